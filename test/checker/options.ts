import { parseArgs } from 'node:util';

export const TOPOLOGY_NAMES = [
  'process-sqlite',
  'process-sqlite-normal',
  'workers-sqlite',
  'workers-memory',
  'replicas-redis',
  'replicas-redis-workers',
  'replicas-sentinel',
  'replicas-local',
] as const;

export type TopologyName = (typeof TOPOLOGY_NAMES)[number];

export interface CheckerOptions {
  /** The minimum for each topology: clients go on until each kind of fault has been injected. */
  readonly intents: number;
  readonly topologies: readonly TopologyName[];
  readonly seed: number;
  /** Intents in progress at a time. */
  readonly clients: number;
  /** Only a few faults, and none that takes more than seconds. */
  readonly isSmoke: boolean;
}

const SMOKE = { intents: '120', topologies: 'workers-sqlite,replicas-redis,replicas-sentinel' };

export const USAGE = `npm run check:writes -- [options]

  --intents N       writes that clients want to make, for each topology (default 2000)
  --topology NAMES  ${TOPOLOGY_NAMES.join(', ')};
                    several with commas (default all)
  --seed N          seed of clients, upstream and faults (default 1)
  --clients N       writes in progress at a time (default 100)
  --smoke           ${SMOKE.intents} writes at ${SMOKE.topologies} at once, and at least four short faults each
`;

/** @throws Error that says what is wrong with the arguments */
export function parseOptions(args: readonly string[]): CheckerOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      intents: { type: 'string' },
      topology: { type: 'string' },
      seed: { type: 'string', default: '1' },
      clients: { type: 'string', default: '100' },
      smoke: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const names = values.topology ?? (values.smoke ? SMOKE.topologies : TOPOLOGY_NAMES.join(','));
  const count = (option: 'intents' | 'clients', text: string): number => {
    const number = Number(text);
    if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${option} ${text}: expected a positive number`);
    return number;
  };
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed ${values.seed}: expected a whole number`);
  return {
    intents: count('intents', values.intents ?? (values.smoke ? SMOKE.intents : '2000')),
    topologies: names.split(',').map(toTopology),
    seed,
    clients: count('clients', values.clients),
    isSmoke: values.smoke,
  };
}

function toTopology(text: string): TopologyName {
  const name = TOPOLOGY_NAMES.find((each) => each === text);
  if (name === undefined) throw new Error(`--topology ${text}: expected ${TOPOLOGY_NAMES.join(', ')}`);
  return name;
}
