import { compilePlan, compileUpstreams } from '../../../../src/config/compile/compile-policy.ts';
import { loadConfig } from '../../../../src/config/load/load-config.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import type { LimitModelSpec } from '../../../../src/simulator/limit-models/limit-model-spec.ts';
import type { ClientGroup, ScenarioPolicy, Scenario } from '../../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../../src/simulator/scenario.ts';
import type { UpstreamSpec } from '../../../../src/simulator/upstream/upstream-model.ts';
import { TEN_CLIENTS } from '../../../support/core/ten-clients.ts';

export const DEFAULTS: ScenarioPolicy = defaults();

function defaults(): ScenarioPolicy {
  const loaded = loadConfig(`upstreams: {${UPSTREAM_NAME}: {url: 'http://127.0.0.1'}}`, 'defaults', {
    env: {},
    readFile: () => '',
  });
  if (loaded.kind === 'mistakes') throw new Error('the default configuration is invalid');
  const upstream = loaded.config.upstreams[UPSTREAM_NAME];
  const settings = compileUpstreams(loaded.config)[0];
  if (upstream === undefined || settings === undefined) throw new Error('the defaults name no upstream');
  const { name: _, ...policy } = settings;
  return { ...policy, plan: compilePlan(upstream.retry, upstream) };
}

export const CLIENTS: ClientGroup = { ...TEN_CLIENTS, name: 'clients', rate: 0 };

export const SERVICE: Millis = 50;

interface RowTerms {
  readonly limit: LimitModelSpec;
  readonly upstream?: Partial<UpstreamSpec>;
  /** Total offered rate. */
  readonly offered: PerSecond;
  readonly duration?: Millis;
  readonly warmup?: Millis;
  readonly clients?: readonly ClientGroup[];
  readonly replicas?: number;
  readonly policy?: Partial<ScenarioPolicy>;
}

export function scenarioOf(
  name: string,
  { limit, upstream, offered, duration = 100_000, warmup = 20_000, clients, replicas = 1, policy }: RowTerms,
): Scenario {
  return {
    name,
    duration,
    warmup,
    upstream: {
      limit,
      latency: { kind: 'exponential', mean: SERVICE },
      refusalLatency: { kind: 'exponential', mean: 5 },
      ...upstream,
    },
    networkLatency: 5,
    shared: false,
    pauses: [],
    clients: clients ?? [{ ...CLIENTS, rate: offered / CLIENTS.count }],
    replicas,
    policy: { ...DEFAULTS, ...policy },
  };
}

export function wasteAllowed(limit: PerSecond): number {
  return limit >= 50 ? 0.01 : limit >= 10 ? 0.02 : 0.035;
}

export const RATES = [12, 20, 50, 100, 300, 1000];

export const KINDS: readonly (readonly [string, (rate: PerSecond) => LimitModelSpec])[] = [
  ['token bucket', (rate) => ({ kind: 'token-bucket', rate, burst: Math.max(5, rate / 5) })],
  ['gcra', (rate) => ({ kind: 'gcra', rate, burst: 5 })],
  ['fixed 1 s', (rate) => ({ kind: 'fixed-window', limit: rate, window: 1000 })],
  ['sliding 1 s', (rate) => ({ kind: 'sliding-window', limit: rate, window: 1000 })],
  ['fixed 10 s', (rate) => ({ kind: 'fixed-window', limit: 10 * rate, window: 10_000 })],
];

export const BUCKET: LimitModelSpec = { kind: 'token-bucket', rate: 100, burst: 20 };
