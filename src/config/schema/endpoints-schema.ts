import { z } from 'zod';
import { PositiveDuration } from '../values/unit-schemas.ts';

export const OutlierDetectionSchema = z.strictObject({
  consecutiveGatewayErrors: z
    .int()
    .min(0)
    .max(1000)
    .prefault(5)
    .describe(
      'Consecutive failures (connection refused or broken, timeout, 502 to 504) after which an endpoint is ejected; 0 for never.',
    ),
  baseEjectionTime: PositiveDuration.prefault('10s').describe(
    'Duration of the first ejection; the n-th in a row lasts n times as long.',
  ),
  maxEjectionTime: PositiveDuration.prefault('5m').describe('Maximum duration of an ejection.'),
  maxEjectionPercent: z
    .int()
    .min(0)
    .max(100)
    .prefault(50)
    .describe('Maximum share of the endpoints ejected at a time, rounded up; never all of them.'),
});

export const DnsRefreshSchema = PositiveDuration.prefault('10s').describe(
  'How often the host name of an endpoint in use is resolved again.',
);

const CheckPath = z
  .string()
  .regex(/^\/[!-~]*$/, 'must begin with / and contain no spaces: /healthz')
  .refine((path) => !path.includes('#'), 'must contain no fragment (#)');

const StatusOrClass = z.union([z.int().min(200).max(599), z.enum(['2xx', '3xx', '4xx', '5xx'])]);
const Statuses = z.union([StatusOrClass, z.array(StatusOrClass).min(1)], {
  error: 'must be a status from 200 to 599, or 2xx, 3xx, 4xx or 5xx, or a list of these',
});

/** Active health checks of each endpoint. */
export const HealthCheckSchema = z.strictObject({
  path: CheckPath.describe('What is requested with GET, such as /healthz.'),
  interval: PositiveDuration.prefault('10s').describe(
    'Time from the end of a check to the next one of the endpoint, in each worker and replica; a tenth more or less at random.',
  ),
  timeout: PositiveDuration.prefault('2s').describe('Maximum time to connect and to receive the response head.'),
  healthy: z
    .int()
    .min(1)
    .max(100)
    .prefault(2)
    .describe('Successful checks in a row after which an unhealthy endpoint gets requests again.'),
  unhealthy: z
    .int()
    .min(1)
    .max(100)
    .prefault(3)
    .describe('Failed checks in a row after which an endpoint gets no requests.'),
  status: Statuses.prefault('2xx').describe('The statuses of a successful check.'),
});
