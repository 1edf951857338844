import { z } from 'zod';

/** What the clients are to do. Times in milliseconds. */
export const loadPlan = z.object({
  /** Where requests go: each to one of them, by chance. */
  urls: z.array(z.string()).min(1),
  /** The practice upstream: reset at the start, asked what it counted. */
  upstream: z.string(),
  clients: z.int().positive(),
  /** Requests a second of all clients together. */
  rate: z.number().positive(),
  /** Not counted. */
  warmup: z.number().min(0),
  /** Counted. */
  span: z.number().positive(),
  /** An answer after that is a failure. */
  deadline: z.number().positive(),
  seed: z.int(),
});

export type LoadPlan = z.infer<typeof loadPlan>;

const count = z.int().min(0);

const counted = z.object({
  /** 200 within the deadline. */
  successes: count,
  /** 429 or 503, whoever said so. */
  refused: count,
  failed: count,
  /** Requests that the upstream saw, let pass, and answered with 429 or 5xx. */
  sends: count,
  accepted: count,
  wasted: count,
});

export type Counted = z.infer<typeof counted>;

const time = z.number().min(0);

export const measurement = z.object({
  /** In the counted time. */
  offered: count,
  counted,
  /** The warm-up. */
  cold: counted,
  /** Answers in the counted time; `0` are those that failed without one. */
  statuses: z.record(z.string(), count),
  /** Of successes, from when they were to be sent. */
  latency: z.object({ p50: time, p99: time }),
  /** How late requests left, at the 99th percentile: what the machine adds. */
  lateness: time,
});

export type Measurement = z.infer<typeof measurement>;
