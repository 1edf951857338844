import { z } from 'zod';
import { PositiveDuration, Rate } from '../values/unit-schemas.ts';

const whole = z.int().min(1).max(1_000_000);
const bucket = {
  rate: Rate.describe('Requests a second that it lets through.'),
  burst: whole.prefault(1).describe('Requests that may come at once after a pause.'),
};
const window = {
  limit: whole.describe('Requests in a window.'),
  window: PositiveDuration.prefault('1s').describe('The length of a window.'),
};

/** A limit as an upstream enforces it. */
export const Limit = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('token-bucket').describe('A bucket that fills at a rate.'), ...bucket }),
  z.strictObject({ kind: z.literal('gcra').describe('Requests evenly spaced.'), ...bucket }),
  z.strictObject({
    kind: z.literal('fixed-window').describe('Counted from one tick of the clock to the next.'),
    ...window,
  }),
  z.strictObject({ kind: z.literal('sliding-window').describe('Counted in every stretch of time.'), ...window }),
  z.strictObject({ kind: z.literal('sliding-window-counting').describe('Refused requests count too.'), ...window }),
  z.strictObject({
    kind: z.literal('blackout').describe('A bucket that shuts out whoever asks for too much.'),
    ...bucket,
    length: PositiveDuration.prefault('30s').describe('For how long nothing passes then.'),
  }),
  z.strictObject({
    kind: z.literal('concurrency').describe('Requests in flight.'),
    limit: whole.describe('Requests at a time.'),
  }),
  z.strictObject({ kind: z.literal('unlimited').describe('No limit.') }),
]);
