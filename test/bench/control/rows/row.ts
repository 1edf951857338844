import type { Scenario } from '../../../../src/simulator/scenario.ts';
import type { Millis } from '../../../../src/core/scalars.ts';

/** A minimum or maximum for a figure. */
export interface RowGoal {
  readonly figure: Figure;
  readonly min?: number;
  readonly max?: number;
}

/**
 * `upstreamP50` and `upstreamP99`: the wait that the upstream itself adds. `abandoned`: attempts that timed out while the upstream worked
 * on them ÷ these and the successes. `overOracle`: the sum of the medians of both waits, at the proxy and at the upstream, minus that of
 * the oracle. `settle` counts from `changeAt`; `calls` are those that reached the upstream between `changeAt` and `changeTo`.
 */
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
  | 'failures'
  | 'refused'
  | 'upstreamP50'
  | 'upstreamP99'
  | 'abandoned'
  | 'overOracle';

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
  /** Whether the figures relative to the oracle are wanted without a goal for them. */
  readonly comparesWithOracle?: boolean;
}
