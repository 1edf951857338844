import type { SimulationReport } from '../../../src/simulator/report/simulation-report.ts';
import type { GoodputRow } from './row.ts';

/** With a larger difference, either the simulator or the proxy is wrong. */
export const TOLERANCE = { goodput: 0.05, waste: 0.01 } as const;

/** A measured figure compared with the simulated one. */
export interface SimulationComparison {
  readonly measured: number;
  /** Mean and standard deviation over the seeds. */
  readonly simulated: number;
  readonly deviation: number;
  readonly difference: number;
  readonly agrees: boolean;
}

export interface Agreement {
  readonly goodput: SimulationComparison;
  readonly waste: SimulationComparison;
}

export function compare(row: GoodputRow, reports: readonly SimulationReport[]): Agreement {
  const goodputs = reports.map(({ goodput }) => goodput);
  const wastes = reports.map(({ waste }) => waste);
  return {
    goodput: compareOne(row.goodput, goodputs, TOLERANCE.goodput),
    waste: compareOne(row.waste, wastes, TOLERANCE.waste),
  };
}

function compareOne(measured: number, simulated: readonly number[], tolerance: number): SimulationComparison {
  const count = simulated.length;
  const mean = simulated.reduce((sum, value) => sum + value, 0) / count;
  const squares = simulated.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  const difference = Math.abs(measured - mean);
  return { measured, simulated: mean, deviation, difference, agrees: difference <= tolerance };
}
