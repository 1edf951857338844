import type { HealthCheckSettings } from '../../http/upstream/health/health-checks.ts';
import type { UpstreamConfig } from '../schema/config-schema.ts';
import { toList } from '../values/one-or-many.ts';

/** Undefined if nothing is checked. */
export function compileHealthCheck(config: UpstreamConfig['healthCheck']): HealthCheckSettings | undefined {
  if (config === undefined) return undefined;
  const { status, ...settings } = config;
  const statuses = new Set<number | string>(toList(status));
  const isHealthyStatus = (code: number): boolean => statuses.has(code) || statuses.has(`${Math.floor(code / 100)}xx`);
  return { ...settings, isHealthyStatus, statuses: [...statuses].join() };
}
