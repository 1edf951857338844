import { Registry } from 'prom-client';
import { type ProcessMetrics, readMetrics } from './merged-metrics.ts';
import type { ExpositionFormat } from './exposition-format.ts';
import { formatMetrics } from './exposition-format.ts';

/**
 * A registry that exports both formats. The registry of prom-client 15.1.3 permanently removes `_total` from the names of its
 * counters when it exports OpenMetrics, so that format is exported from a copy.
 */
export class MetricsRegistry extends Registry {
  override async metrics(format: ExpositionFormat = 'prometheus'): Promise<string> {
    if (format === 'prometheus') return super.metrics();
    return formatMetrics(await this.read(), format);
  }

  read(): Promise<ProcessMetrics[]> {
    return readMetrics(this);
  }
}
