import type { LimitModelSpec } from '../../../../src/simulator/limit-models/limit-model-spec.ts';
import type { ControlRow } from './row.ts';
import { CLIENTS, KINDS, RATES, wasteAllowed, scenarioOf } from './row-builders.ts';

export function steady(): ControlRow[] {
  return KINDS.flatMap(([kind, limitAt]) =>
    [5, ...RATES].map((rate): ControlRow => {
      const name = `${kind}, ${rate}/s`;
      const long = rate < 50 || kind === 'fixed 10 s';
      return {
        name,
        family: rate === 5 ? 'steady 5/s' : 'steady',
        scenario: scenarioOf(name, {
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

/** Limits without a burst, which reject every early request (nginx's limit_req by default). */
export function strict(): ControlRow[] {
  return [12, 100, 1000].map((rate): ControlRow => {
    const name = `gcra without burst, ${rate}/s`;
    return {
      name,
      family: 'strict',
      scenario: scenarioOf(name, { limit: { kind: 'gcra', rate, burst: 1 }, offered: 2 * rate }),
      goals: [{ figure: 'waste', max: 0.05 }],
    };
  });
}

export function counting(): ControlRow[] {
  return [20, 100, 300].map((rate): ControlRow => {
    const name = `counting window, ${rate}/s`;
    return {
      name,
      family: 'counting',
      scenario: scenarioOf(name, {
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

/** Limits that block a client for a while once it exceeds them. */
export function penalties(): ControlRow[] {
  return [
    { rate: 20, length: 5000 },
    { rate: 100, length: 10_000 },
    { rate: 100, length: 30_000 },
    { rate: 100, length: 30_000, isCold: true },
  ].map(({ rate, length, isCold = false }): ControlRow => {
    const name = `penalty of ${length / 1000} s, ${rate}/s${isCold ? ', its first ten minutes' : ''}`;
    const limit: LimitModelSpec = { kind: 'blackout', rate, burst: Math.max(5, rate / 5), length };
    return {
      name,
      family: 'penalty',
      scenario: scenarioOf(name, {
        limit,
        offered: 2 * rate,
        duration: isCold ? 600_000 : 960_000,
        warmup: isCold ? 0 : 240_000,
      }),
      // Every probe is penalised, so the goals require rare probes and a wide margin over retries alone.
      goals: [
        { figure: 'goodput', min: isCold ? 0.6 : 0.75 },
        { figure: 'waste', max: 0.03 },
      ],
    };
  });
}

/** A `Retry-After` that is always the same stops a client for longer than the limit needs: few clients lose much. */
export function staticHints(): ControlRow[] {
  return [1, 2, 3].map((count): ControlRow => {
    const name = `Retry-After always 60 s, ${count} ${count === 1 ? 'client' : 'clients'}`;
    const limit: LimitModelSpec = { kind: 'token-bucket', rate: 50, burst: 10 };
    const scenario = scenarioOf(name, {
      limit,
      offered: 100,
      upstream: { hints: 'retry-after', retryAfter: 60_000 },
      clients: [{ ...CLIENTS, count, rate: 100 / count }],
      duration: 960_000,
      warmup: 240_000,
    });
    return { name, family: 'static hints', scenario, goals: [{ figure: 'goodput', min: 0.8 }] };
  });
}

export function concurrency(): ControlRow[] {
  return [12, 20, 50, 200].map((places): ControlRow => {
    const name = `${places} in flight`;
    const mean = 100;
    return {
      name,
      family: 'concurrency',
      scenario: scenarioOf(name, {
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

export function minutes(): ControlRow[] {
  const limit: LimitModelSpec = { kind: 'fixed-window', limit: 3000, window: 60_000 };
  const terms = { limit, offered: 100, duration: 960_000, warmup: 240_000 };
  return [
    {
      name: 'minute window',
      family: 'minute',
      scenario: scenarioOf('minute window', terms),
      goals: [
        { figure: 'goodput', min: 0.8 },
        { figure: 'waste', max: 0.015 },
      ],
    },
    {
      name: 'minute window, RateLimit header',
      family: 'minute',
      scenario: scenarioOf('minute window, RateLimit header', { ...terms, upstream: { hints: 'ratelimit' } }),
      goals: [
        { figure: 'goodput', min: 0.97 },
        { figure: 'waste', max: 0.0005 },
      ],
    },
    {
      name: 'minute window, X-RateLimit headers',
      family: 'minute',
      scenario: scenarioOf('minute window, X-RateLimit headers', { ...terms, upstream: { hints: 'x-ratelimit' } }),
      goals: [
        { figure: 'goodput', min: 0.97 },
        { figure: 'waste', max: 0.0005 },
      ],
    },
    {
      name: 'minute window, Retry-After',
      family: 'minute',
      scenario: scenarioOf('minute window, Retry-After', { ...terms, upstream: { hints: 'retry-after' } }),
      goals: [
        { figure: 'goodput', min: 0.8 },
        { figure: 'waste', max: 0.015 },
      ],
    },
  ];
}
