import { compileScenario } from '../../../../src/simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../../../src/simulator/scenario-file/scenario-schema.ts';
import { loadLibraryScenario } from '../../../support/core/scenario-library.ts';
import type { ControlRow } from './row.ts';

interface Adverse {
  readonly scenario: string;
  readonly name: string;
  readonly goodput: number;
  readonly waste: number;
  readonly changes?: Partial<ScenarioConfig>;
}

const LONG = { duration: 480_000, warmup: 60_000 };

/** Bundled scenarios in which a rate collapses if it reacts to every rejection, or to none. */
const ADVERSE: readonly Adverse[] = [
  { scenario: 'noise', name: 'one in a hundred rejected at any rate', goodput: 0.7, waste: 0.02 },
  { scenario: 'loud-noise', name: 'one in twenty rejected at any rate', goodput: 0.65, waste: 0.11 },
  { scenario: 'shared-quota', name: 'used up by others 2 s of every 30 s', goodput: 0.75, waste: 0.03 },
  { scenario: 'deep-dip', name: 'down to 1/s for 90 s, and back', goodput: 0.7, waste: 0.02 },
  { scenario: 'step-down', name: 'down to 40 % for good', goodput: 0.95, waste: 0.012, changes: LONG },
  { scenario: 'replicas-8', name: '8 replicas for 8 minutes', goodput: 0.95, waste: 0.02, changes: LONG },
  { scenario: 'far-away', name: 'an upstream 2 s away', goodput: 0.95, waste: 0.01 },
  { scenario: 'priorities', name: 'checkouts beside a batch job', goodput: 0.9, waste: 0.015 },
];

export function adverse(): ControlRow[] {
  return ADVERSE.map(({ scenario, name, goodput, waste, changes = {} }) => ({
    name,
    family: 'adverse',
    scenario: compileScenario(name, { ...loadLibraryScenario(scenario), ...changes }),
    goals: [
      { figure: 'goodput', min: goodput },
      { figure: 'waste', max: waste },
    ],
  }));
}
