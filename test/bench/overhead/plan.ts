import { z } from 'zod';

/** What the load generator is to send. */
export const loadPlan = z.object({
  url: z.string(),
  method: z.enum(['GET', 'POST']),
  path: z.string(),
  /** Bytes of a request's body. */
  upload: z.number().int().min(0),
  /** Bytes that an answer's body has to have. */
  download: z.number().int().min(0),
  connections: z.number().int().min(1),
  /** Who ask, in turn. */
  clients: z.number().int().min(1),
  /** Requests under way at a time, where no rate is told; absent: one on each connection. */
  inFlight: z.number().int().min(1).optional(),
  /** Requests a second, evenly spaced; absent: another is sent as soon as one has been answered. */
  rate: z.number().optional(),
  warmup: z.number(),
  span: z.number(),
});
export type LoadPlan = z.infer<typeof loadPlan>;

/** What came of it; times in milliseconds. */
export const loaded = z.object({
  /** Answered right within the span. */
  answered: z.number(),
  /** Answered otherwise, cut, or not at all. */
  failed: z.number(),
  span: z.number(),
  p50: z.number(),
  p99: z.number(),
  p999: z.number(),
});
export type Loaded = z.infer<typeof loaded>;

/** Sent at the beginning and at the end of the span, so that whoever counts processor time knows when. */
export const signal = z.union([z.literal('begins'), z.literal('ends')]);
