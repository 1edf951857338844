import type { LimitModelSpec } from '../../../../src/simulator/limit-models/limit-model-spec.ts';
import type { RowGoal, ControlRow } from './row.ts';
import { BUCKET, CLIENTS, KINDS, scenarioOf } from './row-builders.ts';

export function sharing(): ControlRow[] {
  const others = { ...CLIENTS, name: 'others', count: 9, rate: 85 / 9 };
  return [
    {
      name: 'one client sends 100x the others',
      family: 'sharing',
      group: 'others',
      scenario: scenarioOf('one client sends 100x the others', {
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
      scenario: scenarioOf('weights 4:1, all backlogged', {
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
      scenario: scenarioOf('ten equal clients at 5x', { limit: BUCKET, offered: 500 }),
      goals: [{ figure: 'jain', min: 0.99 }],
    },
  ];
}

const WAITING: readonly RowGoal[] = [
  { figure: 'goodput', min: 0.95 },
  { figure: 'waste', max: 0.01 },
];

/** Clients that honour Retry-After exactly. */
export function waiting(): ControlRow[] {
  return [
    { name: 'ten clients at 5x, honouring Retry-After', count: 10, offered: 500 },
    { name: '500 clients at 2x, honouring Retry-After', count: 500, offered: 200 },
  ].map(({ name, count, offered }): ControlRow => {
    const clients = [{ ...CLIENTS, count, rate: offered / count, honoursRetryAfter: true }];
    return { name, family: 'waiting', scenario: scenarioOf(name, { limit: BUCKET, offered, clients }), goals: WAITING };
  });
}

export function replicas(): ControlRow[] {
  const limit: LimitModelSpec = { kind: 'token-bucket', rate: 400, burst: 80 };
  return [
    { name: '8 replicas, nothing shared', shared: false, goodput: 0.95, waste: 0.016 },
    { name: '8 replicas, limits shared', shared: true, goodput: 0.98, waste: 0.005 },
  ].map(({ name, shared, goodput, waste }): ControlRow => {
    const scenario = scenarioOf(name, { limit, offered: 800, replicas: 8 });
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

export function latency(): ControlRow[] {
  return [
    {
      name: 'open, 100/s',
      family: 'latency',
      scenario: scenarioOf('open, 100/s', { limit: { kind: 'unlimited' }, offered: 100 }),
      goals: [{ figure: 'p99', max: 5 }],
    },
    ...KINDS.slice(0, 4).map(([kind, limitAt]): ControlRow => {
      const name = `${kind}, 100/s, load 2, then 0.75`;
      const clients = [{ ...CLIENTS, rate: 20, steps: [{ at: 40_000, rate: 7.5 }] }];
      return {
        name,
        family: 'latency',
        scenario: scenarioOf(name, { limit: limitAt(100), offered: 0, clients, warmup: 60_000, duration: 140_000 }),
        goals: [{ figure: 'addedOfOracle', max: 1.2 }],
      };
    }),
  ];
}
