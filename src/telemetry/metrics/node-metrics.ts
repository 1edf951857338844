import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * Gauges of prom-client 15.1.3 that end in `_total`, which `promtool check metrics` refuses for anything but a counter.
 * The gauges without that suffix have the same values, by type.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** Metrics of the process and the Node runtime, under the usual names of prom-client. */
export function exposeNodeMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
}
