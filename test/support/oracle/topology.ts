/** The properties that the oracle varies between configurations, and their YAML. */
import type { Millis, Random } from '../../../src/core/scalars.ts';

export type Concurrent = 'wait' | 'refuse' | 'pass';

/** How two tenants with the same key are distinguished; `credential`: only by their tokens and bodies. */
export type Tenancy = 'header' | 'usual' | 'assertion' | 'subject' | 'credential';

export interface Topology {
  readonly name: string;
  readonly concurrent: Concurrent;
  /** Number of responding endpoints. */
  readonly endpoints: number;
  /** Adds an endpoint that refuses connections. */
  readonly hasDeadOne: boolean;
  readonly sharesKeys: boolean;
  readonly ttl: Millis | undefined;
  readonly tenancy: Tenancy;
  /** True if a repeat gets the stored decline; otherwise it is a new attempt. */
  readonly storesDeclines: boolean;
  readonly marksReplays: boolean;
  readonly finishes: boolean;
  readonly repeatsLocks: boolean;
  readonly retriesDeclines: boolean;
  readonly attempts: number;
  /** Where the key is sent. */
  readonly keyIn: 'header' | 'body';
}

export const REPLAY_LIMIT = 2048;

/** Timeout of the upstream for paths below this one. */
export const IMPATIENT: Millis = 150;

const TENANCIES: readonly Tenancy[] = ['header', 'usual', 'assertion', 'subject', 'credential'];

const ACCOUNTS: Readonly<Record<Tenancy, string>> = {
  header: 'header:X-Account',
  usual: '',
  assertion: '',
  subject: 'jwt:org|sub',
  credential: 'none',
};

/** @param number six consecutive numbers cover one or several endpoints, shared or separate keys, ttl or none */
export function drawTopology(concurrent: Concurrent, number: number, random: Random): Topology {
  const isOne = number % 3 === 0;
  const hasTtl = number % 2 === 0;
  const topology = {
    concurrent,
    endpoints: isOne ? 1 : 2 + Math.floor(2 * random()),
    hasDeadOne: random() < 0.4,
    sharesKeys: number % 3 === 2,
    ttl: hasTtl ? 1000 + 1000 * Math.floor(2 * random()) : undefined,
    tenancy: pickOf(TENANCIES, random),
    storesDeclines: random() < 0.5,
    marksReplays: random() < 0.7,
    finishes: random() < 0.3,
    repeatsLocks: random() < 0.5,
    retriesDeclines: random() < 0.4,
    attempts: 1 + Math.floor(4 * random()),
    keyIn: random() < 0.75 ? ('header' as const) : ('body' as const),
  };
  return { ...topology, name: `${number}: ${JSON.stringify(topology)}` };
}

export function yamlOf(topology: Topology, urls: readonly string[]): string {
  const { concurrent, sharesKeys, ttl, tenancy, finishes, repeatsLocks, retriesDeclines, attempts, keyIn } = topology;
  const account = ACCOUNTS[tenancy];
  const settings = [
    `concurrent: ${concurrent}`,
    ...(keyIn === 'body' ? ['jsonField: key'] : []),
    ...(urls.length > 1 ? [`sharesKeys: ${sharesKeys}`] : []),
    ...(ttl === undefined ? [] : [`ttl: ${ttl}ms`]),
    ...(account === '' ? [] : [`account: "${account}"`]),
  ];
  return `
upstreams:
  api:
    ${urls.length > 1 ? `urls: ${JSON.stringify(urls)}` : `url: ${urls[0]}`}
    timeout: 120s
    perTryTimeout: 60s
    queue: {maxWait: 300ms}
    rateLimit: {minRate: 200/s}
    outlierDetection: {consecutiveGatewayErrors: 3, baseEjectionTime: 100ms}
    idempotency: {${settings.join(', ')}}
    retry:
      attempts: ${attempts}
      retryOn: [5xx, "429", connect-failure, reset, timeout${repeatsLocks ? ', lock' : ''}${retriesDeclines ? ', "402"' : ''}]
      replayLimit: ${REPLAY_LIMIT}B
      onClientGone: ${finishes ? 'finish' : 'cancel'}
      budget: {ratio: 1, burst: 10000}
      backOff: {strategy: fixed, baseInterval: 5ms}
routes:
  - {path: /, upstream: api}
  - {path: /impatient, upstream: api, perTryTimeout: ${IMPATIENT}ms, timeout: 1s}
`;
}

export function pickOf<T>(values: readonly T[], random: Random): T {
  const value = values[Math.floor(values.length * random())];
  if (value === undefined) throw new RangeError('nothing to choose from');
  return value;
}
