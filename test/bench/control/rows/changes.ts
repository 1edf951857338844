import type { PerSecond } from '../../../../src/policy/types.ts';
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

export function steps(): Row[] {
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
