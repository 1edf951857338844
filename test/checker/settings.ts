/** The configuration of Tidegate, with what a reload may change. */
import type { Millis, Random } from '../../src/core/scalars.ts';
import type { Topology } from '../support/oracle/topology.ts';
import { IMPATIENT, REPLAY_LIMIT } from '../support/oracle/topology.ts';

/** How long the upstream says that it remembers a key. */
const KEY_TTL: Millis = 3000;

/** The upstream, and what Tidegate does about it. */
export const UPSTREAM: Topology = {
  name: 'checker',
  concurrent: 'wait',
  endpoints: 1,
  hasDeadOne: false,
  sharesKeys: true,
  ttl: KEY_TTL,
  tenancy: 'header',
  storesDeclines: true,
  marksReplays: true,
  finishes: false,
  repeatsLocks: true,
  retriesDeclines: false,
  attempts: 3,
  keyIn: 'header',
};

export interface ReloadableSettings {
  readonly concurrent: 'wait' | 'refuse';
  readonly attempts: number;
  readonly onClientGone: 'finish' | 'cancel';
  readonly keepsResponses: boolean;
  /** Another value each time: a file with the same content is no reload. */
  readonly maxDepth: number;
}

export const FIRST_SETTINGS: ReloadableSettings = {
  concurrent: 'wait',
  attempts: 3,
  onClientGone: 'cancel',
  keepsResponses: true,
  maxDepth: 1000,
};

let drawn = 0;

export function drawSettings(random: Random): ReloadableSettings {
  drawn += 1;
  return {
    concurrent: random() < 0.7 ? 'wait' : 'refuse',
    attempts: 1 + Math.floor(4 * random()),
    onClientGone: random() < 0.5 ? 'finish' : 'cancel',
    keepsResponses: random() < 0.5,
    maxDepth: 1000 + drawn,
  };
}

export interface GateSettings {
  readonly listen: number;
  readonly admin: number;
  readonly workers: number;
  /** The `state` section. */
  readonly state: string;
  readonly onStoreLost: 'refuse' | 'local';
  readonly upstream: string;
}

export function yamlOf(
  gate: GateSettings,
  { concurrent, attempts, onClientGone, keepsResponses, maxDepth }: ReloadableSettings,
): string {
  return `
listen: 127.0.0.1:${gate.listen}
admin: 127.0.0.1:${gate.admin}
workers: ${gate.workers}
secret: the same for all replicas
drain: {delay: 0, timeout: 5s}
limits: {overload: {eventLoopDelay: 1h}}
${gate.state}
upstreams:
  api:
    url: ${gate.upstream}
    timeout: 40s
    perTryTimeout: 20s
    queue: {maxWait: 1s, maxDepth: ${maxDepth}}
    rateLimit: {minRate: 500/s}
    idempotency: {concurrent: ${concurrent}, ttl: ${KEY_TTL}ms, account: "header:X-Account", onStoreLost: ${gate.onStoreLost}${keepsResponses ? ', replayAnswers: 24h' : ''}}
    retry:
      attempts: ${attempts}
      retryOn: [5xx, "429", connect-failure, reset, timeout, lock]
      replayLimit: ${REPLAY_LIMIT}B
      onClientGone: ${onClientGone}
      budget: {ratio: 1, burst: 10000}
      backOff: {strategy: fixed, baseInterval: 5ms}
routes:
  - {path: /, upstream: api}
  - {path: /impatient, upstream: api, perTryTimeout: ${IMPATIENT}ms, timeout: 1s}
`;
}
