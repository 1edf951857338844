import { z } from 'zod';

/** The clients' plan. Times in milliseconds. */
export const loadPlan = z.object({
  /** Targets; each request goes to a random one. */
  urls: z.array(z.string()).min(1),
  /** The practice upstream, reset at the start, whose counters are read. */
  upstream: z.string(),
  clients: z.int().positive(),
  /** Requests a second of all clients together. */
  rate: z.number().positive(),
  /** Time that is not counted. */
  warmup: z.number().min(0),
  /** Counted time. */
  span: z.number().positive(),
  /** A later response is a failure. */
  deadline: z.number().positive(),
  /** The upstream is a service that queues: clients leave at the deadline, and the waits at the service are read. */
  isService: z.boolean(),
  seed: z.int(),
});

export type GoodputLoadPlan = z.infer<typeof loadPlan>;

const count = z.int().min(0);

const counted = z.object({
  /** 200 within the deadline. */
  successes: count,
  /** 429 or 503, by the proxy or the upstream. */
  refused: count,
  failed: count,
  /** Requests that the upstream received, accepted, and answered with 429 or 5xx. */
  sends: count,
  accepted: count,
  wasted: count,
});

export type Counted = z.infer<typeof counted>;

const time = z.number().min(0);

export const measurement = z.object({
  /** Requests in the counted time. */
  offered: count,
  counted,
  /** The warm-up. */
  cold: counted,
  /** Responses in the counted time by status; `0` counts failures without a response. */
  statuses: z.record(z.string(), count),
  /** Latency of successes, from when they were due. */
  latency: z.object({ p50: time, p99: time }),
  /** Of a service: the requests that it has worked on, and how long they waited for it, abandoned ones included. */
  service: z.object({ worked: count, wait: z.object({ p50: time, p99: time }) }).optional(),
  /** The 99th percentile of send delays, caused by the machine. */
  lateness: time,
});

export type Measurement = z.infer<typeof measurement>;
