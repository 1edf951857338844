import type { LimitModelSpec } from '../../../../src/simulator/limit-models/limit-model-spec.ts';
import type { PerSecond } from '../../../../src/core/scalars.ts';
import type { RowGoal, ControlRow } from './row.ts';
import { BUCKET, KINDS, scenarioOf } from './row-builders.ts';

export function load(): ControlRow[] {
  return KINDS.map(([kind, limitAt]): ControlRow => {
    const name = `${kind}, 100/s, load 1.0`;
    return {
      name,
      family: 'load 1.0',
      scenario: scenarioOf(name, { limit: limitAt(100), offered: 100, duration: 220_000 }),
      goals: [
        { figure: 'ofOracle', min: 0.97 },
        { figure: 'waste', max: 0.01 },
      ],
    };
  });
}

/** The value that a step changes: requests a second, or in a window. */
function amountOf(model: LimitModelSpec): number {
  if ('rate' in model) return model.rate;
  return 'limit' in model ? model.limit : Number.POSITIVE_INFINITY;
}

/** A ten-second window reveals its limit only once per window, at the cost of seconds, so a rise is found later. */
const LONG_WINDOW = 'fixed 10 s';

export function steps(): ControlRow[] {
  const step = (name: string, from: PerSecond, to: PerSecond, { usually, slowly = usually }: StepGoals): ControlRow[] =>
    KINDS.map(([model, limitAt]): ControlRow => {
      const isSlow = model === LONG_WINDOW;
      const title = `${name}, ${model}`;
      return {
        name: title,
        family: 'step',
        changeAt: 60_000,
        changeTo: isSlow ? 180_000 : 120_000,
        scenario: scenarioOf(title, {
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
  readonly usually: readonly RowGoal[];
  readonly slowly?: readonly RowGoal[];
}

export function outages(): ControlRow[] {
  return (['refuse', '503', 'reset'] as const).map((how): ControlRow => {
    const name = `outage of 10 s (${how})`;
    return {
      name,
      family: 'outage',
      changeAt: 60_000,
      changeTo: 70_000,
      scenario: scenarioOf(name, {
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
