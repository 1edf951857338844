import { Registry } from 'prom-client';
import { readMetrics } from './merged-metrics.ts';
import type { Format } from './exposition-format.ts';
import { writeMetrics } from './exposition-format.ts';

/**
 * A registry that can be asked for either format, time and again. That of prom-client 15.1.3 takes `_total` off the names of
 * its counters when it writes OpenMetrics, for good: so that is written from a copy.
 */
export class MetricsRegistry extends Registry {
  override async metrics(format: Format = 'prometheus'): Promise<string> {
    if (format === 'prometheus') return super.metrics();
    return writeMetrics(await readMetrics(this), format);
  }
}
