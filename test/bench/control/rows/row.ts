import type { Scenario } from '../../../../src/simulator/scenario.ts';
import type { Millis } from '../../../../src/core/scalars.ts';

/** A minimum or maximum for a figure. */
export interface RowGoal {
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

export interface ControlRow {
  readonly name: string;
  readonly family: string;
  readonly scenario: Scenario;
  readonly goals: readonly RowGoal[];
  /** When the limit changes, or the outage begins and ends. */
  readonly changeAt?: Millis;
  readonly changeTo?: Millis;
  /** The group whose share, success and latency are measured. */
  readonly group?: string;
}
