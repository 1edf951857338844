import { compileScenario } from '../../../../src/compile-scenario.ts';
import { loadLibrary } from '../../../support/library.ts';
import type { Row } from './row.ts';

/** Scenarios of the library in which a rate that believes every rejection is taken down for good, or shares badly. */
const ADVERSE: readonly (readonly [scenario: string, name: string, goodput: number, waste: number])[] = [
  ['noise', 'one of a hundred rejected at any rate', 0.7, 0.03],
  ['shared-quota', 'used up by others 2 s of every 30 s', 0.75, 0.03],
  ['deep-dip', 'down to 1/s for 90 s, and back', 0.7, 0.02],
  ['far-away', 'an upstream 2 s away', 0.95, 0.01],
  ['priorities', 'checkouts beside a batch job', 0.93, 0.015],
];

export function adverse(): Row[] {
  return ADVERSE.map(([scenario, name, goodput, waste]) => ({
    name,
    family: 'adverse',
    scenario: compileScenario(name, loadLibrary(scenario)),
    goals: [
      { figure: 'goodput', min: goodput },
      { figure: 'waste', max: waste },
    ],
  }));
}
