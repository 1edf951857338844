import { parseArgs } from 'node:util';
import type { OverheadContenderName } from './contenders.ts';
import { CONTENDERS } from './contenders.ts';

export interface OverheadOptions {
  readonly rounds: number;
  readonly contenders: readonly OverheadContenderName[];
  /** Counted milliseconds of each run, and the warm-up. */
  readonly span: number;
  readonly warmup: number;
  /** A short run that only checks that everything works. */
  readonly smoke: boolean;
  /** The folder of another Tidegate build to compare with. */
  readonly before: string | undefined;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
}

export const USAGE = `npm run bench:overhead -- [options]

  --rounds N        how often each is measured, in turn (5)
  --seconds N       counted time of each run (3)
  --warmup N        seconds before it that are not counted (1.5)
  --proxies A,B     of ${CONTENDERS.join(', ')}
  --before DIR      beside another checkout of Tidegate that has been built
  --smoke           a moment of each: does it all work?
  --json FILE       writes every run
  --markdown FILE   puts the tables between the marks of that file
`;

/** @throws Error that explains an invalid argument */
export function parseOptions(args: readonly string[]): OverheadOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      warmup: { type: 'string' },
      proxies: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      before: { type: 'string' },
      json: { type: 'string' },
      markdown: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { smoke, before, json, markdown } = values;
  const names: readonly string[] = values.proxies?.split(',') ?? CONTENDERS;
  const unknown = names.find((name) => !CONTENDERS.some((contender) => contender === name));
  if (unknown !== undefined) throw new Error(`--proxies ${unknown}: expected ${CONTENDERS.join(', ')}`);
  return {
    rounds: readNumber('--rounds', values.rounds ?? (smoke ? '1' : '5')),
    contenders: CONTENDERS.filter((name) => names.includes(name)),
    span: 1000 * readNumber('--seconds', values.seconds ?? (smoke ? '0.3' : '3')),
    warmup: 1000 * readNumber('--warmup', values.warmup ?? (smoke ? '0.2' : '1.5')),
    smoke,
    before,
    json,
    markdown,
  };
}

function readNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 10_000)) throw new Error(`${flag} ${text}: expected a number above 0`);
  return value;
}
