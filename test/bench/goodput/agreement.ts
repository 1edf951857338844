import type { Report } from '../../../src/sim/report.ts';
import type { Row } from './row.ts';

/** Further apart, either the simulator or the proxy is wrong. */
export const TOLERANCE = { goodput: 0.05, waste: 0.01 } as const;

/** How far a measured figure is from the simulated one. */
export interface Comparison {
  readonly measured: number;
  /** Mean, least and most of the seeds. */
  readonly simulated: number;
  readonly least: number;
  readonly most: number;
  readonly difference: number;
  readonly agrees: boolean;
}

export interface Agreement {
  readonly goodput: Comparison;
  readonly waste: Comparison;
}

export function compare(row: Row, reports: readonly Report[]): Agreement {
  return {
    goodput: compareOne(
      row.goodput,
      reports.map(({ goodput }) => goodput),
      TOLERANCE.goodput,
    ),
    waste: compareOne(
      row.waste,
      reports.map(({ waste }) => waste),
      TOLERANCE.waste,
    ),
  };
}

function compareOne(measured: number, simulated: readonly number[], tolerance: number): Comparison {
  const mean = simulated.reduce((sum, value) => sum + value, 0) / simulated.length;
  const difference = Math.abs(measured - mean);
  return {
    measured,
    simulated: mean,
    least: Math.min(...simulated),
    most: Math.max(...simulated),
    difference,
    agrees: difference <= tolerance,
  };
}
