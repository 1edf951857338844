import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { writeDuration } from '../../config/values/unit-schemas.ts';
import { originsOf } from '../../config/schema/upstream-schema.ts';

/** What becomes of the endpoints of upstreams that have several, in lines. */
export function describeEndpoints({ upstreams }: Config): string[] {
  return Object.entries(upstreams).flatMap(([name, upstream]) => {
    const count = originsOf(upstream).length;
    if (count < 2) return [];
    return [
      `${name}: ${count} endpoints, up to ${upstream.connections} connections to each`,
      `  ${tellEjections(upstream.outlierDetection, count)}`,
    ];
  });
}

function tellEjections(outliers: UpstreamConfig['outlierDetection'], count: number): string {
  const { consecutiveGatewayErrors, baseEjectionTime, maxEjectionTime, maxEjectionPercent } = outliers;
  const most = Math.min(count - 1, Math.ceil((count * maxEjectionPercent) / 100));
  if (consecutiveGatewayErrors === 0 || most === 0) return 'none is left out, whatever fails';
  const failures = `${consecutiveGatewayErrors} ${consecutiveGatewayErrors === 1 ? 'failure' : 'failures in a row'}`;
  const time = `${writeDuration(baseEjectionTime)} up to ${writeDuration(maxEjectionTime)}`;
  return `after ${failures} one is left out, for ${time}; at most ${most} at a time, and none when all fail`;
}
