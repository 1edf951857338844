import { z } from 'zod';
import { HINT_STYLES } from '../sim/hint-style.ts';
import { Duration, PositiveDuration, Rate } from './units.ts';

const whole = z.int().min(1).max(1_000_000);
const bucket = {
  rate: Rate.describe('Requests a second that it lets through.'),
  burst: whole.prefault(1).describe('Requests that may come at once after a pause.'),
};
const window = {
  limit: whole.describe('Requests in a window.'),
  window: PositiveDuration.prefault('1s').describe('The length of a window.'),
};

const Limit = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('token-bucket').describe('A bucket that fills at a rate.'), ...bucket }),
  z.strictObject({ kind: z.literal('gcra').describe('Requests evenly spaced.'), ...bucket }),
  z.strictObject({
    kind: z.literal('fixed-window').describe('Counted from one tick of the clock to the next.'),
    ...window,
  }),
  z.strictObject({ kind: z.literal('sliding-window').describe('Counted in every stretch of time.'), ...window }),
  z.strictObject({ kind: z.literal('sliding-window-counting').describe('Refused requests count too.'), ...window }),
  z.strictObject({
    kind: z.literal('concurrency').describe('Requests in flight.'),
    limit: whole.describe('Requests at a time.'),
  }),
  z.strictObject({ kind: z.literal('unlimited').describe('No limit.') }),
]);

export const Practice = z.strictObject({
  limit: Limit.prefault({ kind: 'token-bucket', rate: '20/s', burst: 10 }).describe(
    'The limit it enforces and does not tell.',
  ),
  latency: Duration.prefault('30ms').describe('How long it takes to answer.'),
  hints: z.enum(HINT_STYLES).prefault('none').describe('What it says of its limit.'),
  seed: z.int().min(0).prefault(1).describe('Equal seeds give equal runs.'),
});
