import { parseArgs } from 'node:util';
import type { GoodputContenderName } from './contenders.ts';
import { CONTENDERS } from './contenders.ts';
import type { LimitKind } from './kinds.ts';
import { KINDS } from './kinds.ts';

export interface GoodputOptions {
  readonly kinds: readonly LimitKind[];
  readonly contenders: readonly GoodputContenderName[];
  /** Counted seconds and warm-up seconds; undefined: the defaults of each kind. */
  readonly seconds: number | undefined;
  readonly warmup: number | undefined;
  /** A short run that only checks that everything works. */
  readonly smoke: boolean;
  readonly seed: number;
  /** Worker processes of Tidegate. */
  readonly workers: number;
  /** Files to write to. */
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  /** The date of the run, for the files; omitted if absent. */
  readonly date: string | undefined;
}

export const USAGE = `npm run bench:goodput -- [options]

  --seconds N       counted time of each run (30; 60 where a limit is found slowly)
  --warmup N        seconds before that, not counted (10; 30 where a limit is found slowly)
  --smoke           a moment of two kinds: does it all work?
  --kinds A,B       of ${KINDS.map(({ name }) => name).join(', ')}
  --proxies A,B     of ${CONTENDERS.join(', ')}
  --workers N       processes of Tidegate that serve (1)
  --seed N          of arrivals, of the upstream and of the first simulation (1)
  --json FILE       writes everything
  --markdown FILE   puts the tables between the marks of that file
  --date TEXT       when, for those files
`;

const SMOKE_KINDS = ['token-bucket-100', 'concurrency-20'];

/** @throws Error that explains an invalid argument */
export function parseOptions(args: readonly string[]): GoodputOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      warmup: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      kinds: { type: 'string' },
      proxies: { type: 'string' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '1' },
      json: { type: 'string' },
      markdown: { type: 'string' },
      date: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { smoke, json, markdown, date } = values;
  const all = smoke ? KINDS.filter(({ name }) => SMOKE_KINDS.includes(name)) : KINDS;
  return {
    kinds: choose('--kinds', values.kinds, KINDS, ({ name }) => name) ?? all,
    contenders: choose('--proxies', values.proxies, CONTENDERS, (name) => name) ?? CONTENDERS,
    seconds: readGiven('--seconds', values.seconds ?? (smoke ? '1.5' : undefined), 0.1),
    warmup: readGiven('--warmup', values.warmup ?? (smoke ? '0.5' : undefined), 0),
    workers: Math.floor(readNumber('--workers', values.workers, 1)),
    seed: Math.floor(readNumber('--seed', values.seed, 0)),
    smoke,
    json,
    markdown,
    date,
  };
}

function readGiven(flag: string, text: string | undefined, least: number): number | undefined {
  return text === undefined ? undefined : readNumber(flag, text, least);
}

function choose<T>(
  flag: string,
  names: string | undefined,
  from: readonly T[],
  nameOf: (each: T) => string,
): readonly T[] | undefined {
  return names?.split(',').map((name) => {
    const found = from.find((each) => nameOf(each) === name);
    if (found === undefined) throw new Error(`${flag} ${name}: expected ${from.map(nameOf).join(', ')}`);
    return found;
  });
}

function readNumber(flag: string, text: string, least: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= least && value < Number.POSITIVE_INFINITY)) {
    throw new Error(`${flag} ${text}: expected a number of at least ${least}`);
  }
  return value;
}
