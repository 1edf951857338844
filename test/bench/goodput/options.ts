import { parseArgs } from 'node:util';
import type { GoodputContenderName } from './contenders.ts';
import { CONTENDERS } from './contenders.ts';
import type { LimitKind } from './kinds.ts';
import { KINDS } from './kinds.ts';
import type { ServiceContenderName } from './services/service-contenders.ts';
import { SERVICE_CONTENDERS } from './services/service-contenders.ts';
import type { ServiceKind } from './services/service-kinds.ts';
import { SERVICE_KINDS } from './services/service-kinds.ts';

export interface GoodputOptions {
  readonly kinds: readonly LimitKind[];
  readonly contenders: readonly GoodputContenderName[];
  readonly services: readonly ServiceKind[];
  readonly serviceContenders: readonly ServiceContenderName[];
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

  --seconds N       counted time of each run (30; 60 where a limit is found slowly, and for two workers)
  --warmup N        seconds before that, not counted (10; 30 where a limit is found slowly, 20 for services)
  --smoke           a moment of two kinds and of the services: does it all work?
  --kinds A,B       of ${[...KINDS, ...SERVICE_KINDS].map(({ name }) => name).join(', ')}
  --proxies A,B     of ${[...new Set([...CONTENDERS, ...SERVICE_CONTENDERS])].join(', ')}; some only run at services
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
  const kinds = choose(
    '--kinds',
    values.kinds,
    [...KINDS, ...SERVICE_KINDS].map(({ name }) => name),
  );
  const proxies = choose('--proxies', values.proxies, [...new Set([...CONTENDERS, ...SERVICE_CONTENDERS])]);
  const isChosen = ({ name }: { readonly name: string }): boolean => kinds?.includes(name) ?? true;
  const isSmoked = ({ name }: LimitKind): boolean => !smoke || kinds !== undefined || SMOKE_KINDS.includes(name);
  return {
    kinds: KINDS.filter(isChosen).filter(isSmoked),
    services: SERVICE_KINDS.filter(isChosen),
    contenders: CONTENDERS.filter((name) => proxies?.includes(name) ?? true),
    serviceContenders: SERVICE_CONTENDERS.filter((name) => proxies?.includes(name) ?? true),
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

function choose<T extends string>(
  flag: string,
  names: string | undefined,
  from: readonly T[],
): readonly T[] | undefined {
  return names?.split(',').map((name) => {
    const found = from.find((each) => each === name);
    if (found === undefined) throw new Error(`${flag} ${name}: expected ${from.join(', ')}`);
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
