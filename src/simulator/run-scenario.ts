import type { GateView } from '../core/events/gate-views.ts';
import type { Millis, PerSecond } from '../core/scalars.ts';
import type { SimulationReport } from './report/simulation-report.ts';
import { ReportRecorder } from './report/report-recorder.ts';
import type { UpstreamSpec } from './upstream/upstream-model.ts';
import type { SimulatorParts } from './engine/simulator.ts';
import { Simulator } from './engine/simulator.ts';

/** The interval of the series' samples, in ms. */
export const SAMPLE_INTERVAL: Millis = 250;

/** Runs a scenario to its end and returns its report. */
export function runScenario(parts: Omit<SimulatorParts, 'observer'>): SimulationReport {
  const { scenario, seed } = parts;
  const recorder: ReportRecorder = new ReportRecorder(scenario, () => simulator.now());
  const simulator: Simulator = new Simulator({ ...parts, observer: recorder });
  let views: readonly GateView[] = [];
  simulator.run(SAMPLE_INTERVAL, (now) => {
    // Reading the view advances a gate in time, so it is not read while the machine sleeps.
    if (!simulator.isPaused) views = simulator.gates.map((gate) => gate.view(now));
    const capacity = upstreamCapacity(scenario.upstream, simulator.upstream.limit(now), now);
    recorder.sample(now, scenario.pauses.some(({ from, to }) => now > from && now <= to) ? 0 : capacity, views);
  });
  return recorder.report(seed);
}

/**
 * Requests a second that an upstream accepts, at a limit in the unit of its kind; 0 while it is down. A limit on
 * requests in flight is converted by Little's law.
 */
export function upstreamCapacity(spec: UpstreamSpec, limit: number, now: Millis): PerSecond {
  if ((spec.outages ?? []).some(({ from, to }) => now > from && now <= to)) return 0;
  switch (spec.limit.kind) {
    case 'fixed-window':
    case 'sliding-window':
    case 'sliding-window-counting':
      return (1000 * limit) / spec.limit.window;
    case 'concurrency':
      return (1000 * limit) / (spec.latency?.mean ?? 0);
    case 'token-bucket':
    case 'gcra':
    case 'blackout':
    case 'unlimited':
      return limit;
  }
}
