import { z } from 'zod';
import { validatePathPattern } from '../../core/http-semantics/path-pattern.ts';
import { HINT_STYLES } from '../../config/schema/hint-styles.ts';
import type { UpstreamSpec } from '../upstream/upstream-model.ts';
import { OUTAGE_KINDS } from '../upstream/upstream-model.ts';

/** A practice upstream: times in milliseconds since its start or its last reset. */
export interface PracticeSpec extends UpstreamSpec {
  /** How responses to charges fail after the charge was made. */
  readonly afterCharge?: AfterCharge;
  /** The header that carries the reason of a rejection, where there is one; `Stripe-Rate-Limited-Reason` when absent. */
  readonly reasonHeader?: string;
  /** The seed of its random numbers; 1 when absent. */
  readonly seed?: number;
}

/** Probabilities, together at most 1: the charge is made, and then … */
export interface AfterCharge {
  /** … the connection is reset, */
  readonly reset?: number;
  /** … no answer comes, */
  readonly hang?: number;
  /** … the answer is a 500. */
  readonly error?: number;
}

const positive = z.number().positive();
const atLeast1 = z.number().min(1);
const time = z.number().min(0);
const probability = z.number().min(0).max(1);

const nestable = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('token-bucket'), rate: positive, burst: atLeast1 }),
  z.strictObject({ kind: z.literal('gcra'), rate: positive, burst: atLeast1 }),
  z.strictObject({ kind: z.literal('fixed-window'), limit: atLeast1, window: positive }),
  z.strictObject({
    kind: z.literal(['sliding-window', 'sliding-window-counting']),
    limit: atLeast1,
    window: positive,
  }),
  z.strictObject({ kind: z.literal('blackout'), rate: positive, burst: atLeast1, length: positive }),
  z.strictObject({ kind: z.literal('concurrency'), limit: atLeast1 }),
  z.strictObject({ kind: z.literal('unlimited') }),
]);

const latency = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('constant'), mean: time }),
  z.strictObject({ kind: z.literal('uniform'), mean: time, spread: time.exactOptional() }),
  z.strictObject({ kind: z.literal('exponential'), mean: time }),
  z.strictObject({ kind: z.literal('lognormal'), mean: time, sigma: time.exactOptional() }),
]);

const slowdown = z.strictObject({
  factor: atLeast1,
  from: time.exactOptional(),
  to: time.exactOptional(),
  every: positive.exactOptional(),
  lasting: positive.exactOptional(),
});

const limit = z.discriminatedUnion('kind', [
  ...nestable.options,
  z.strictObject({
    kind: z.literal('workers'),
    workers: atLeast1,
    discipline: z.enum(['fifo', 'sharing']).exactOptional(),
    thrashing: z.strictObject({ above: atLeast1, slowdown: time }).exactOptional(),
    slowdowns: z.array(slowdown).exactOptional(),
    pool: z.strictObject({ connections: atLeast1, latency }).exactOptional(),
  }),
]);

const match = {
  path: z
    .array(z.string().refine((text) => validatePathPattern(text) === undefined))
    .min(1)
    .exactOptional(),
  method: z.array(z.string().min(1)).min(1).exactOptional(),
};

const burst = z.strictObject({
  probability,
  status: z.int().min(400).max(599).exactOptional(),
  from: time.exactOptional(),
  to: time.exactOptional(),
});

const nested = z.strictObject({
  name: z.string().min(1),
  ...match,
  eachMethod: z.boolean().exactOptional(),
  limit: nestable,
  reason: z.string().min(1).max(64).exactOptional(),
});

const afterCharge = z.strictObject({
  reset: probability.exactOptional(),
  hang: probability.exactOptional(),
  error: probability.exactOptional(),
});

/** A change to a practice upstream, as JSON has it. */
export const practicePatch: z.ZodType<Partial<PracticeSpec>> = z.strictObject({
  limit: limit.exactOptional(),
  latency: latency.exactOptional(),
  latencies: z.array(z.strictObject({ ...match, latency })).exactOptional(),
  refusalLatency: latency.exactOptional(),
  errors: z.array(burst).exactOptional(),
  outages: z.array(z.strictObject({ from: time, to: time, how: z.enum(OUTAGE_KINDS) })).exactOptional(),
  steps: z.array(z.strictObject({ at: time, limit: positive })).exactOptional(),
  hints: z.enum(HINT_STYLES).exactOptional(),
  retryAfter: time.exactOptional(),
  limits: z.array(nested).exactOptional(),
  reason: z.string().min(1).max(64).exactOptional(),
  reasonHeader: z.string().min(1).exactOptional(),
  afterCharge: afterCharge.exactOptional(),
  seed: z.int().exactOptional(),
});
