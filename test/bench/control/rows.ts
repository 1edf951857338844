/** The scenarios in which controllers are compared, with the goals of the adaptive rate. */
import { adverse } from './rows/adverse.ts';
import { load, outages, steps } from './rows/changes.ts';
import { latency, replicas, sharing, waiting } from './rows/clients.ts';
import { concurrency, counting, minutes, penalties, staticHints, steady, strict } from './rows/limits.ts';
import type { RowGoal, ControlRow } from './rows/row.ts';
import { overloadedServices, sufficientServices } from './rows/workers.ts';

export const ROWS: readonly ControlRow[] = [
  ...steady(),
  ...strict(),
  ...counting(),
  ...penalties(),
  ...staticHints(),
  ...concurrency(),
  ...minutes(),
  ...load(),
  ...steps(),
  ...outages(),
  ...sharing(),
  ...waiting(),
  ...replicas(),
  ...latency(),
  ...adverse(),
];

/** Services that queue instead of rejecting: compared by `--services`, apart from the others. */
export const SERVICE_ROWS: readonly ControlRow[] = [...overloadedServices(), ...sufficientServices()];

/** Goals for the mean over the rows of a family. */
export const FAMILY_GOALS: readonly { readonly family: string; readonly goal: RowGoal }[] = [
  { family: 'steady', goal: { figure: 'goodput', min: 0.96 } },
];
