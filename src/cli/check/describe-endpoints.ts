import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { formatDuration } from '../../config/values/unit-schemas.ts';
import { limitOwner, upstreamOrigins } from '../../config/schema/upstream-schema.ts';

/** Endpoints and ejection of the upstreams that have several endpoints, one line each. */
export function describeEndpoints({ upstreams }: Config): string[] {
  return Object.entries(upstreams).flatMap(([name, upstream]) => {
    const count = upstreamOrigins(upstream).length;
    if (count < 2) return [];
    return [
      `${name}: ${count} endpoints, up to ${upstream.connections} connections to each`,
      `  ${describeEjection(upstream.outlierDetection, count)}`,
      `  ${OWNER_TEXT[limitOwner(upstream)]}`,
      ...(upstream.healthCheck === undefined ? [] : [`  ${describeChecks(upstream.healthCheck)}`]),
    ];
  });
}

const OWNER_TEXT = {
  account: 'a 429 with Retry-After concerns the account: it counts against the limit of the upstream',
  endpoint: 'a 429 or 503 with Retry-After concerns its endpoint: it is ejected until then, if another takes over',
} as const;

function describeChecks({ path, interval, unhealthy }: NonNullable<UpstreamConfig['healthCheck']>): string {
  const failures = unhealthy === 1 ? '1 failed check' : `${unhealthy} failed checks`;
  return `each process checks each endpoint every ${formatDuration(interval)} (GET ${path}); no requests after ${failures}`;
}

function describeEjection(outliers: UpstreamConfig['outlierDetection'], count: number): string {
  const { consecutiveGatewayErrors, baseEjectionTime, maxEjectionTime, maxEjectionPercent } = outliers;
  const maxEjected = Math.min(count - 1, Math.ceil((count * maxEjectionPercent) / 100));
  if (consecutiveGatewayErrors === 0 || maxEjected === 0) return 'no endpoint is ever ejected';
  const failures = `${consecutiveGatewayErrors} ${consecutiveGatewayErrors === 1 ? 'failure' : 'failures in a row'}`;
  const time = `${formatDuration(baseEjectionTime)} up to ${formatDuration(maxEjectionTime)}`;
  return `an endpoint is ejected after ${failures}, for ${time}; at most ${maxEjected} at a time, and none if all fail`;
}
