import { z } from 'zod';
import { PositiveDuration, Rate } from '../values/unit-schemas.ts';
import { workersFields } from './service-schema.ts';

const wholeNumber = z.int().min(1).max(1_000_000);
const bucketFields = {
  rate: Rate.describe('Requests per second that it accepts.'),
  burst: wholeNumber.prefault(1).describe('Requests accepted at once after a pause.'),
};
const windowFields = {
  limit: wholeNumber.describe('Requests accepted in a window.'),
  window: PositiveDuration.prefault('1s').describe('The length of a window.'),
};

/** A limit as a simulated upstream enforces it, of all requests or of some. */
export const NestableLimitSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('token-bucket').describe('A token bucket that refills at a constant rate.'),
    ...bucketFields,
  }),
  z.strictObject({ kind: z.literal('gcra').describe('Requests evenly spaced.'), ...bucketFields }),
  z.strictObject({
    kind: z.literal('fixed-window').describe('Windows aligned to the clock.'),
    ...windowFields,
  }),
  z.strictObject({
    kind: z.literal('sliding-window').describe('Any interval of the length of the window.'),
    ...windowFields,
  }),
  z.strictObject({
    kind: z.literal('sliding-window-counting').describe('A sliding window in which rejected requests count too.'),
    ...windowFields,
  }),
  z.strictObject({
    kind: z.literal('blackout').describe('A token bucket that rejects everything for a while once it is exceeded.'),
    ...bucketFields,
    length: PositiveDuration.prefault('30s').describe('How long everything is rejected then.'),
  }),
  z.strictObject({
    kind: z.literal('concurrency').describe('A limit on requests in flight.'),
    limit: wholeNumber.describe('Maximum requests in flight.'),
  }),
  z.strictObject({ kind: z.literal('unlimited').describe('No limit.') }),
]);

/** A limit of all requests as a simulated upstream enforces it. */
export const SimulatedLimitSchema = z.discriminatedUnion('kind', [
  ...NestableLimitSchema.options,
  z.strictObject({
    kind: z.literal('workers').describe('A service that never rejects, and becomes slow.'),
    ...workersFields,
  }),
]);
