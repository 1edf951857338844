import { z } from 'zod';

/** The load generator's plan. */
export const loadPlan = z.object({
  url: z.string(),
  method: z.enum(['GET', 'POST']),
  path: z.string(),
  /** Bytes of each request body. */
  upload: z.number().int().min(0),
  /** Expected bytes of each response body. */
  download: z.number().int().min(0),
  connections: z.number().int().min(1),
  /** Number of clients, used in turn. */
  clients: z.number().int().min(1),
  /** Requests in flight if no rate is given; absent: one on each connection. */
  inFlight: z.number().int().min(1).optional(),
  /** Requests a second, evenly spaced; absent: closed loop. */
  rate: z.number().optional(),
  warmup: z.number(),
  span: z.number(),
});
export type OverheadLoadPlan = z.infer<typeof loadPlan>;

/** Results of a load; times in milliseconds. */
export const loaded = z.object({
  /** Correct responses within the span. */
  answered: z.number(),
  /** Wrong, truncated or missing responses. */
  failed: z.number(),
  span: z.number(),
  p50: z.number(),
  p99: z.number(),
  p999: z.number(),
});
export type Loaded = z.infer<typeof loaded>;

/** Messages at the beginning and end of the span, for measuring CPU time. */
export const signal = z.union([z.literal('begins'), z.literal('ends')]);
