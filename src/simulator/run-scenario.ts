import type { GateView } from '../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../core/exchange/attempt-outcome.ts';
import type { Report } from './report/simulation-report.ts';
import { Tally } from './report/report-recorder.ts';
import type { UpstreamSpec } from './upstream/upstream-model.ts';
import type { WorldParts } from './engine/simulator.ts';
import { World } from './engine/simulator.ts';

/** How often the series has a sample. */
export const SAMPLE: Millis = 250;

/** Runs a scenario to its end and counts it. */
export function runScenario(parts: Omit<WorldParts, 'observer'>): Report {
  const { scenario, seed } = parts;
  const tally: Tally = new Tally(scenario, () => world.now());
  const world: World = new World({ ...parts, observer: tally });
  let views: readonly GateView[] = [];
  world.run(SAMPLE, (now) => {
    // Looking moves a gate on in time, which nobody does while it sleeps.
    if (!world.isAsleep) views = world.gates.map((gate) => gate.view(now));
    const capacity = capacityOf(scenario.upstream, world.upstream.limit(now), now);
    tally.sample(now, scenario.pauses.some(({ from, to }) => now > from && now <= to) ? 0 : capacity, views);
  });
  return tally.report(seed);
}

/** What an upstream lets through a second, at a limit in the unit of its kind; 0 while it is down. Little's law for places in flight. */
export function capacityOf(spec: UpstreamSpec, limit: number, now: Millis): PerSecond {
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
