import { parseArgs } from 'node:util';

export interface Options {
  /** How long it takes, rests included. */
  readonly minutes: number;
  /** Of clients and faults. */
  readonly seed: number;
  /** How clients come: by TLS, and some over HTTP/2; or without both. */
  readonly by: 'tls' | 'tcp';
}

export const USAGE = `npm run soak -- [options]

  --minutes N   how long, at least 0.5 (10)
  --seed N      of clients and faults (1)
  --plain       clients come without TLS and HTTP/2
`;

/** @throws Error that says what is wrong with the arguments */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      plain: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.5 && minutes <= 10_000)) throw new Error(`--minutes ${values.minutes}: expected 0.5 or more`);
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed ${values.seed}: expected a whole number`);
  return { minutes, seed, by: values.plain ? 'tcp' : 'tls' };
}
