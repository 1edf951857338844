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
