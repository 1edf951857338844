import type { ModelSpec } from '../../../../src/simulator/limit-models/limit-model-spec.ts';
import type { PerSecond } from '../../../../src/core/exchange/attempt-outcome.ts';
import type { Goal, Row } from './row.ts';
import { BUCKET, KINDS, world } from './world.ts';

export function load(): Row[] {
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

/** What a step changes: requests a second, or in a window. */
function amountOf(model: ModelSpec): number {
  if ('rate' in model) return model.rate;
  return 'limit' in model ? model.limit : Number.POSITIVE_INFINITY;
}

/** Of a window of ten seconds a rejection tells once in ten seconds, and costs seconds: a rise is found later. */
const LONG_WINDOW = 'fixed 10 s';

export function steps(): Row[] {
  const step = (name: string, from: PerSecond, to: PerSecond, { usually, slowly = usually }: StepGoals): Row[] =>
    KINDS.map(([model, limitAt]): Row => {
      const isSlow = model === LONG_WINDOW;
      const title = `${name}, ${model}`;
      return {
        name: title,
        family: 'step',
        changeAt: 60_000,
        changeTo: isSlow ? 180_000 : 120_000,
        scenario: world(title, {
          limit: limitAt(from),
          offered: 2 * Math.max(from, to),
          duration: isSlow ? 200_000 : 140_000,
          upstream: { steps: [{ at: 60_000, limit: amountOf(limitAt(to)) }] },
        }),
        goals: isSlow ? slowly : usually,
      };
    });
  return [
    ...step('step to 40 %', 100, 40, {
      usually: [
        { figure: 'settle', max: 5000 },
        { figure: 'wastedOnStep', max: 40 },
      ],
    }),
    ...step('step x3', 50, 150, {
      usually: [{ figure: 'settle', max: 15_000 }],
      slowly: [{ figure: 'settle', max: 60_000 }],
    }),
    ...step('step x10', 50, 500, {
      usually: [{ figure: 'settle', max: 45_000 }],
      slowly: [{ figure: 'settle', max: 100_000 }],
    }),
  ];
}

interface StepGoals {
  readonly usually: readonly Goal[];
  readonly slowly?: readonly Goal[];
}

export function outages(): Row[] {
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
