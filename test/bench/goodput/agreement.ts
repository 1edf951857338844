import type { Report } from '../../../src/simulator/report/simulation-report.ts';
import type { Row } from './row.ts';

/** Further apart, either the simulator or the proxy is wrong. */
export const TOLERANCE = { goodput: 0.05, waste: 0.01 } as const;

/** How far a measured figure is from the simulated one. */
export interface Comparison {
  readonly measured: number;
  /** The mean of the seeds, and their standard deviation: what chance alone does to one run. */
  readonly simulated: number;
  readonly deviation: number;
  readonly difference: number;
  readonly agrees: boolean;
}

export interface Agreement {
  readonly goodput: Comparison;
  readonly waste: Comparison;
}

export function compare(row: Row, reports: readonly Report[]): Agreement {
  const goodputs = reports.map(({ goodput }) => goodput);
  const wastes = reports.map(({ waste }) => waste);
  return {
    goodput: compareOne(row.goodput, goodputs, TOLERANCE.goodput),
    waste: compareOne(row.waste, wastes, TOLERANCE.waste),
  };
}

function compareOne(measured: number, simulated: readonly number[], tolerance: number): Comparison {
  const count = simulated.length;
  const mean = simulated.reduce((sum, value) => sum + value, 0) / count;
  const squares = simulated.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  const difference = Math.abs(measured - mean);
  return { measured, simulated: mean, deviation, difference, agrees: difference <= tolerance };
}
