import { collectDefaultMetrics, Registry } from 'prom-client';

/**
 * Gauges of prom-client 15.1.3 that end in `_total`, which `promtool check metrics` refuses for anything but a counter.
 * The gauges without that suffix have the same values, by type.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * Metrics of the process, shared by all registries. prom-client 15.1.3 never ends what it measures them with: an observer of the
 * garbage collector, which would keep each registry and its proxy in memory, and a timer that fires a hundred times a second.
 */
let ofProcess: Registry | undefined;

/** Metrics of the process and the Node runtime, under the usual names of prom-client. */
export function exposeNodeMetrics(registry: Registry): void {
  ofProcess ??= measureProcess();
  for (const { name } of ofProcess.getMetricsAsArray()) {
    const metric = ofProcess.getSingleMetric(name);
    if (metric !== undefined) registry.registerMetric(metric);
  }
}

function measureProcess(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}
