import { parseArgs } from 'node:util';

export const USAGE = `npm run bench:workers -- [options]

  --rounds N        how often each is measured, in turn (15)
  --seconds N       counted time of each run (2)
  --smoke           a moment of each: does it all work?
  --markdown FILE   puts the tables between the marks of that file

Ends with 1 when two workers do not do 1.5 times what one does.
`;

export interface WorkersBenchOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly smoke: boolean;
  readonly markdown: string | undefined;
}

/** @throws Error for options that cannot be measured */
export function readOptions(args: readonly string[]): WorkersBenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      markdown: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { smoke, markdown } = values;
  const rounds = Number(values.rounds ?? (smoke ? 1 : 15));
  const seconds = Number(values.seconds ?? (smoke ? 1 : 2));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: expected a number from 1`);
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error(`--seconds ${values.seconds}: expected whole seconds`);
  return { rounds, seconds, smoke, markdown };
}
