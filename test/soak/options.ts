import { parseArgs } from 'node:util';

export interface SoakOptions {
  /** Length of the run in minutes, pauses included. */
  readonly minutes: number;
  /** Seed of clients and faults. */
  readonly seed: number;
  /** `tls`: clients use TLS, and some HTTP/2. `tcp`: neither. */
  readonly transport: 'tls' | 'tcp';
}

export const USAGE = `npm run soak -- [options]

  --minutes N   length of the run, at least 0.5 (default 10)
  --seed N      seed of clients and faults (default 1)
  --plain       clients without TLS and HTTP/2
`;

/** @throws Error that says what is wrong with the arguments */
export function parseOptions(args: readonly string[]): SoakOptions | 'help' {
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
  return { minutes, seed, transport: values.plain ? 'tcp' : 'tls' };
}
