import { z } from 'zod';
import { MAX_ACKNOWLEDGEMENT_BYTES } from '../../../core/delivery/acknowledgement.ts';
import { Ttl } from '../../values/ttl.ts';
import { Size } from '../../values/unit-schemas.ts';
import { makeScheduleOptions, type ScheduleDefaults } from './delivery-schedule-schema.ts';

/**
 * The schedule of writes that are sent later, where it names none. The outages of providers take minutes. A client waits for a payment for
 * an hour at most, and each provider remembers keys for longer.
 */
export const ASYNC_SCHEDULE: ScheduleDefaults = {
  backOff: { strategy: 'exponential-jitter', baseInterval: 5000, maxInterval: 300_000 },
  total: 3_600_000,
};

/** The response bodies of all writes that are sent at a time are in memory. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** Writes that are stored, answered with 202, and sent later. */
export const AsyncSchema = z.strictObject({
  schedule: makeScheduleOptions('1h')
    .prefault({ strategy: 'exponential-jitter', baseInterval: '5s', maxInterval: '5m', total: '1h' })
    .describe('When a write whose outcome is not known yet is sent again: a backoff with a total, or {delays: […]}.'),
  deduplicateFor: Ttl.prefault('24h').describe('How long a repeat with the key of an accepted write is recognised.'),
  concurrency: z
    .int()
    .min(1)
    .max(10_000)
    .prefault(10)
    .describe('Maximum stored writes of this route that are sent at a time.'),
  maxResponse: Size.refine((bytes) => bytes <= MAX_RESPONSE_BYTES, 'must be at most 16MiB')
    .prefault(`${MAX_ACKNOWLEDGEMENT_BYTES / 1024}KiB`)
    .describe(
      'Maximum size of a response body that is kept for the client; with a longer one, only status and headers are kept.',
    ),
  callback: z
    .string()
    .min(1)
    .optional()
    .describe('The name of a route with deliver, which sends clients the state of their writes once these have ended.'),
  keepFor: z
    .strictObject({
      done: Ttl.prefault('24h').describe('After the upstream has decided about it, or it was canceled.'),
      failed: Ttl.prefault('7d').describe('After its schedule was used up, or its outcome stayed unknown.'),
    })
    .prefault({})
    .describe('How long a write and its response are kept after it has ended.'),
});
