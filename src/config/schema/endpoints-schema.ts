import { z } from 'zod';
import { PositiveDuration } from '../values/unit-schemas.ts';

export const OutlierDetection = z.strictObject({
  consecutiveGatewayErrors: z
    .int()
    .min(0)
    .max(1000)
    .prefault(5)
    .describe(
      'Failures in a row (no connection, a broken one, no answer in time, 502 to 504) after which an endpoint is left out; 0 never.',
    ),
  baseEjectionTime: PositiveDuration.prefault('10s').describe(
    'For how long it is left out the first time; the n-th time in a row n times as long.',
  ),
  maxEjectionTime: PositiveDuration.prefault('5m').describe('For how long it is left out at most.'),
  maxEjectionPercent: z
    .int()
    .min(0)
    .max(100)
    .prefault(50)
    .describe('How many of the endpoints may be left out at a time, rounded up; never all.'),
});

export const DnsRefresh = PositiveDuration.prefault('10s').describe(
  'How often the name of an endpoint is looked up again while it is sent to.',
);
