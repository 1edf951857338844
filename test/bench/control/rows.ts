/** The worlds in which controllers are compared, and what the adaptive rate has to reach in each of them. */
import { compilePlan, compileUpstreams } from '../../../src/compile-policy.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Millis, PerSecond } from '../../../src/policy/types.ts';
import type { ModelSpec } from '../../../src/sim/models.ts';
import type { ClientGroup, PolicySettings, Scenario } from '../../../src/sim/scenario.ts';
import { UPSTREAM } from '../../../src/sim/scenario.ts';
import type { UpstreamSpec } from '../../../src/sim/upstream.ts';
import { TEN_CLIENTS } from '../../support/clients.ts';

/** What a figure has to be: at least, or at most. */
export interface Goal {
  readonly figure: Figure;
  readonly min?: number;
  readonly max?: number;
}

/** `settle` counts from `changeAt`; `calls` are those that reached the upstream between `changeAt` and `changeTo`. */
export type Figure =
  | 'goodput'
  | 'ofOracle'
  | 'waste'
  | 'settle'
  | 'wastedOnStep'
  | 'calls'
  | 'served'
  | 'p50'
  | 'p99'
  | 'oscillation'
  | 'share'
  | 'jain'
  | 'addedOfOracle'
  | 'failures';

export interface Row {
  readonly name: string;
  readonly family: string;
  readonly scenario: Scenario;
  readonly goals: readonly Goal[];
  /** When the limit changes, or the outage begins and ends. */
  readonly changeAt?: Millis;
  readonly changeTo?: Millis;
  /** The group whose share, success and latency are looked at. */
  readonly group?: string;
}

export const DEFAULTS: PolicySettings = defaults();

function defaults(): PolicySettings {
  const loaded = loadConfig(`upstreams: {${UPSTREAM}: {url: 'http://127.0.0.1'}}`, 'defaults', {
    env: {},
    readFile: () => '',
  });
  if (loaded.kind === 'mistakes') throw new Error('the defaults are no configuration');
  const upstream = loaded.config.upstreams[UPSTREAM];
  const settings = compileUpstreams(loaded.config)[0];
  if (upstream === undefined || settings === undefined) throw new Error('the defaults name no upstream');
  const { name: _, ...policy } = settings;
  return { ...policy, plan: compilePlan(upstream.retry, upstream) };
}

export const CLIENTS: ClientGroup = { ...TEN_CLIENTS, name: 'clients', rate: 0 };

const SERVICE: Millis = 50;

interface Terms {
  readonly limit: ModelSpec;
  readonly upstream?: Partial<UpstreamSpec>;
  /** Offered in all. */
  readonly offered: PerSecond;
  readonly duration?: Millis;
  readonly warmup?: Millis;
  readonly clients?: readonly ClientGroup[];
  readonly replicas?: number;
  readonly policy?: Partial<PolicySettings>;
}

function world(
  name: string,
  { limit, upstream, offered, duration = 100_000, warmup = 20_000, clients, replicas = 1, policy }: Terms,
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
    network: 5,
    shared: false,
    pauses: [],
    clients: clients ?? [{ ...CLIENTS, rate: offered / CLIENTS.count }],
    replicas,
    policy: { ...DEFAULTS, ...policy },
  };
}

function wasteAllowed(limit: PerSecond): number {
  return limit >= 50 ? 0.01 : limit >= 10 ? 0.02 : 0.035;
}

const RATES = [12, 20, 50, 100, 300, 1000];

const KINDS: readonly (readonly [string, (rate: PerSecond) => ModelSpec])[] = [
  ['token bucket', (rate) => ({ kind: 'token-bucket', rate, burst: Math.max(5, rate / 5) })],
  ['gcra', (rate) => ({ kind: 'gcra', rate, burst: 5 })],
  ['fixed 1 s', (rate) => ({ kind: 'fixed-window', limit: rate, window: 1000 })],
  ['sliding 1 s', (rate) => ({ kind: 'sliding-window', limit: rate, window: 1000 })],
  ['fixed 10 s', (rate) => ({ kind: 'fixed-window', limit: 10 * rate, window: 10_000 })],
];

function steady(): Row[] {
  return KINDS.flatMap(([kind, limitAt]) =>
    [5, ...RATES].map((rate): Row => {
      const name = `${kind}, ${rate}/s`;
      const long = rate < 50 || kind === 'fixed 10 s';
      return {
        name,
        family: rate === 5 ? 'steady 5/s' : 'steady',
        scenario: world(name, {
          limit: limitAt(rate),
          offered: 2 * rate,
          ...(long ? { duration: 240_000, warmup: 40_000 } : {}),
        }),
        goals:
          rate === 5
            ? [{ figure: 'waste', max: 0.035 }]
            : [
                { figure: 'goodput', min: 0.92 },
                { figure: 'waste', max: wasteAllowed(rate) },
              ],
      };
    }),
  );
}

/** Without a burst: every request that comes early by anything is refused (nginx's limit_req as it comes). */
function strict(): Row[] {
  return [12, 100, 1000].map((rate): Row => {
    const name = `gcra without burst, ${rate}/s`;
    return {
      name,
      family: 'strict',
      scenario: world(name, { limit: { kind: 'gcra', rate, burst: 1 }, offered: 2 * rate }),
      goals: [{ figure: 'waste', max: 0.05 }],
    };
  });
}

function counting(): Row[] {
  return [20, 100, 300].map((rate): Row => {
    const name = `counting window, ${rate}/s`;
    return {
      name,
      family: 'counting',
      scenario: world(name, {
        limit: { kind: 'sliding-window-counting', limit: rate, window: 1000 },
        offered: 2 * rate,
        duration: 140_000,
      }),
      goals: [
        { figure: 'goodput', min: 0.85 },
        { figure: 'waste', max: 0.01 },
      ],
    };
  });
}

/** Whoever asks for too much is shut out for a while. */
function penalties(): Row[] {
  return [
    { rate: 20, length: 5000 },
    { rate: 100, length: 10_000 },
    { rate: 100, length: 30_000 },
  ].map(({ rate, length }): Row => {
    const name = `penalty of ${length / 1000} s, ${rate}/s`;
    const limit: ModelSpec = { kind: 'blackout', rate, burst: Math.max(5, rate / 5), length };
    return {
      name,
      family: 'penalty',
      scenario: world(name, { limit, offered: 2 * rate, duration: 960_000, warmup: 240_000 }),
      // Whoever probes pays: what is wanted is that it is seldom, and that retrying alone is far behind.
      goals: [
        { figure: 'goodput', min: 0.5 },
        { figure: 'waste', max: 0.03 },
      ],
    };
  });
}

function concurrency(): Row[] {
  return [12, 20, 50, 200].map((places): Row => {
    const name = `${places} in flight`;
    const mean = 100;
    return {
      name,
      family: 'concurrency',
      scenario: world(name, {
        limit: { kind: 'concurrency', limit: places },
        offered: (2 * places * 1000) / mean,
        upstream: { latency: { kind: 'exponential', mean } },
      }),
      goals: [
        { figure: 'ofOracle', min: 0.95 },
        { figure: 'waste', max: 0.01 },
      ],
    };
  });
}

function minutes(): Row[] {
  const limit: ModelSpec = { kind: 'fixed-window', limit: 3000, window: 60_000 };
  const terms = { limit, offered: 100, duration: 960_000, warmup: 240_000 };
  return [
    {
      name: 'minute window',
      family: 'minute',
      scenario: world('minute window', terms),
      goals: [
        { figure: 'goodput', min: 0.8 },
        { figure: 'waste', max: 0.015 },
      ],
    },
    {
      name: 'minute window, RateLimit told',
      family: 'minute',
      scenario: world('minute window, RateLimit told', { ...terms, upstream: { hints: 'ratelimit' } }),
      goals: [
        { figure: 'goodput', min: 0.97 },
        { figure: 'waste', max: 0.0005 },
      ],
    },
    {
      name: 'minute window, X-RateLimit told',
      family: 'minute',
      scenario: world('minute window, X-RateLimit told', { ...terms, upstream: { hints: 'x-ratelimit' } }),
      goals: [
        { figure: 'goodput', min: 0.97 },
        { figure: 'waste', max: 0.0005 },
      ],
    },
    {
      name: 'minute window, Retry-After told',
      family: 'minute',
      scenario: world('minute window, Retry-After told', { ...terms, upstream: { hints: 'retry-after' } }),
      goals: [
        { figure: 'goodput', min: 0.8 },
        { figure: 'waste', max: 0.015 },
      ],
    },
  ];
}

const BUCKET: ModelSpec = { kind: 'token-bucket', rate: 100, burst: 20 };

function load(): Row[] {
  return KINDS.map(([kind, limitAt]): Row => {
    const name = `${kind}, 100/s, load 1.0`;
    return {
      name,
      family: 'load 1.0',
      scenario: world(name, { limit: limitAt(100), offered: 100, duration: 220_000 }),
      goals: [
        { figure: 'ofOracle', min: 0.97 },
        { figure: 'waste', max: 0.01 },
      ],
    };
  });
}

function steps(): Row[] {
  const step = (name: string, from: PerSecond, to: PerSecond, goals: readonly Goal[], kind = 1): Row[] =>
    KINDS.filter((_, i) => i < 4 && i !== kind).map(([model, limitAt]): Row => {
      const title = `${name}, ${model}`;
      return {
        name: title,
        family: 'step',
        changeAt: 60_000,
        changeTo: 120_000,
        scenario: world(title, {
          limit: limitAt(from),
          offered: 2 * Math.max(from, to),
          duration: 140_000,
          upstream: { steps: [{ at: 60_000, limit: to }] },
        }),
        goals,
      };
    });
  return [
    ...step('step to 40 %', 100, 40, [
      { figure: 'settle', max: 5000 },
      { figure: 'wastedOnStep', max: 40 },
    ]),
    ...step('step x3', 50, 150, [{ figure: 'settle', max: 15_000 }]),
    ...step('step x10', 50, 500, [{ figure: 'settle', max: 45_000 }]),
  ];
}

function outages(): Row[] {
  return (['refuse', '503', 'reset'] as const).map((how): Row => {
    const name = `outage of 10 s (${how})`;
    return {
      name,
      family: 'outage',
      changeAt: 60_000,
      changeTo: 70_000,
      scenario: world(name, {
        limit: BUCKET,
        offered: 80,
        duration: 110_000,
        upstream: { outages: [{ from: 60_000, to: 70_000, how }] },
      }),
      goals: [
        { figure: 'settle', max: 5000 },
        { figure: 'calls', max: 130 },
      ],
    };
  });
}

function sharing(): Row[] {
  const others = { ...CLIENTS, name: 'others', count: 9, rate: 85 / 9 };
  return [
    {
      name: 'one client sends 100x the others',
      family: 'sharing',
      group: 'others',
      scenario: world('one client sends 100x the others', {
        limit: BUCKET,
        offered: 0,
        clients: [others, { ...CLIENTS, name: 'abuser', count: 1, rate: (100 * 85) / 9 }],
      }),
      goals: [
        { figure: 'served', min: 0.995 },
        { figure: 'p99', max: 300 },
      ],
    },
    {
      name: 'weights 4:1, all backlogged',
      family: 'sharing',
      group: 'heavy',
      scenario: world('weights 4:1, all backlogged', {
        limit: BUCKET,
        offered: 0,
        clients: [
          { ...CLIENTS, name: 'heavy', count: 5, rate: 50, weight: 4 },
          { ...CLIENTS, name: 'light', count: 5, rate: 50 },
        ],
      }),
      goals: [{ figure: 'share', min: 0.784, max: 0.816 }],
    },
    {
      name: 'ten equal clients at 5x',
      family: 'sharing',
      scenario: world('ten equal clients at 5x', { limit: BUCKET, offered: 500 }),
      goals: [{ figure: 'jain', min: 0.99 }],
    },
  ];
}

const WAITING: readonly Goal[] = [
  { figure: 'goodput', min: 0.95 },
  { figure: 'waste', max: 0.01 },
];

/** Clients that come back when they are told to: what they are told is what they do. */
function waiting(): Row[] {
  return [
    { name: 'ten clients at 5x, waiting as told', count: 10, offered: 500 },
    { name: '500 clients at 2x, waiting as told', count: 500, offered: 200 },
  ].map(({ name, count, offered }): Row => {
    const clients = [{ ...CLIENTS, count, rate: offered / count, honoursRetryAfter: true }];
    return { name, family: 'waiting', scenario: world(name, { limit: BUCKET, offered, clients }), goals: WAITING };
  });
}

function replicas(): Row[] {
  const limit: ModelSpec = { kind: 'token-bucket', rate: 400, burst: 80 };
  return [
    { name: '8 replicas, nothing shared', shared: false, goodput: 0.95, waste: 0.016 },
    { name: '8 replicas, limits shared', shared: true, goodput: 0.98, waste: 0.005 },
  ].map(({ name, shared, goodput, waste }): Row => {
    const scenario = world(name, { limit, offered: 800, replicas: 8 });
    return {
      name,
      family: 'replicas',
      scenario: { ...scenario, shared },
      goals: [
        { figure: 'goodput', min: goodput },
        { figure: 'waste', max: waste },
      ],
    };
  });
}

function latency(): Row[] {
  return [
    {
      name: 'open, 100/s',
      family: 'latency',
      scenario: world('open, 100/s', { limit: { kind: 'unlimited' }, offered: 100 }),
      goals: [{ figure: 'p99', max: 5 }],
    },
    ...KINDS.slice(0, 4).map(([kind, limitAt]): Row => {
      const name = `${kind}, 100/s, load 2, then 0.75`;
      const clients = [{ ...CLIENTS, rate: 20, steps: [{ at: 40_000, rate: 7.5 }] }];
      return {
        name,
        family: 'latency',
        scenario: world(name, { limit: limitAt(100), offered: 0, clients, warmup: 60_000, duration: 140_000 }),
        goals: [{ figure: 'addedOfOracle', max: 1.2 }],
      };
    }),
  ];
}

export const ROWS: readonly Row[] = [
  ...steady(),
  ...strict(),
  ...counting(),
  ...penalties(),
  ...concurrency(),
  ...minutes(),
  ...load(),
  ...steps(),
  ...outages(),
  ...sharing(),
  ...waiting(),
  ...replicas(),
  ...latency(),
];

/** Goals for the mean over the rows of a family. */
export const FAMILY_GOALS: readonly { readonly family: string; readonly goal: Goal }[] = [
  { family: 'steady', goal: { figure: 'goodput', min: 0.96 } },
];
