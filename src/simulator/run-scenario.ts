import type { GateView } from '../core/events/gate-views.ts';
import type { Millis } from '../core/scalars.ts';
import type { SimulationReport } from './report/simulation-report.ts';
import { ReportRecorder } from './report/report-recorder.ts';
import { upstreamCapacity } from './report/upstream-capacity.ts';
import type { SimulatorParts } from './engine/simulator.ts';
import { Simulator } from './engine/simulator.ts';

/** The interval of the series' samples, in ms. */
export const SAMPLE_INTERVAL: Millis = 250;

/** Runs a scenario to its end and returns its report. */
export function runScenario(parts: Omit<SimulatorParts, 'observer'>): SimulationReport {
  const { scenario, seed } = parts;
  const recorder: ReportRecorder = new ReportRecorder(scenario, () => simulator.now());
  const simulator: Simulator = new Simulator({ ...parts, observer: recorder });
  const capacityAt = upstreamCapacity(scenario.upstream, scenario.clients, SAMPLE_INTERVAL);
  let views: readonly GateView[] = [];
  simulator.run(SAMPLE_INTERVAL, (now) => {
    // Reading the view advances a gate in time, so it is not read while the machine sleeps.
    if (!simulator.isPaused) views = simulator.gates.map((gate) => gate.view(now));
    const capacity = capacityAt(now, simulator.upstream.limit(now));
    recorder.sample(now, scenario.pauses.some(({ from, to }) => now > from && now <= to) ? 0 : capacity, views);
  });
  return recorder.report(seed);
}
