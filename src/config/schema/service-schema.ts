/** How long a simulated upstream takes, and how its workers serve. */
import { z } from 'zod';
import { Duration, PositiveDuration } from '../values/unit-schemas.ts';

const mean = Duration.describe('The mean.');

/** A duration alone is a constant latency; an object has a distribution. */
export const LatencySchema = z.union([
  Duration.transform((constant) => ({ kind: 'constant' as const, mean: constant })),
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('constant').describe('Always the same.'), mean }),
    z.strictObject({
      kind: z.literal('uniform').describe('Anything within mean ± spread.'),
      mean,
      spread: Duration.exactOptional().describe('At most the mean, and the mean if absent.'),
    }),
    z.strictObject({ kind: z.literal('exponential').describe('Mostly short, occasionally long.'), mean }),
    z.strictObject({
      kind: z.literal('lognormal').describe('As measured at services: few short ones, some very long.'),
      mean,
      sigma: z.number().min(0).max(5).exactOptional().describe('Of the logarithm; 0.5 if absent.'),
    }),
  ]),
]);

/** `fifo`: one request a worker, others wait. `sharing`: all at once, and the time of the workers is divided among them. */
export type Discipline = (typeof DISCIPLINES)[number];

const DISCIPLINES = ['fifo', 'sharing'] as const;

const count = z.int().min(1).max(1_000_000);

const SlowdownSchema = z
  .strictObject({
    factor: z.number().min(1).max(1_000_000).describe('Work takes this many times as long.'),
    from: Duration.exactOptional().describe('The start.'),
    to: PositiveDuration.exactOptional().describe('The end.'),
    every: PositiveDuration.exactOptional().describe('With lasting: slow at the start of each period of this length.'),
    lasting: PositiveDuration.exactOptional().describe('How long it is slow in each period.'),
  })
  .refine(({ every, lasting }) => (every === undefined) === (lasting === undefined), {
    error: 'every (the length of a period) and lasting (how long it is slow in each) need each other',
  });

/** The fields of a limit of the kind `workers`. */
export const workersFields = {
  workers: count.describe('Requests that it serves at once at full speed.'),
  discipline: z
    .enum(DISCIPLINES, 'expected fifo or sharing')
    .prefault('fifo')
    .describe('fifo: a worker serves one request, and others wait; sharing: all are served at once, each more slowly.'),
  thrashing: z
    .strictObject({
      above: count.describe('Requests at the service up to which it keeps its speed.'),
      slowdown: z.number().min(0).max(10).describe('How much longer work takes for each request more: 0.01 is 1 %.'),
    })
    .exactOptional()
    .describe('Too many requests at once make all of them slower.'),
  pool: z
    .strictObject({
      connections: count.describe('Its connections.'),
      latency: LatencySchema.describe('The time for which a request has one.'),
    })
    .exactOptional()
    .describe('A pool of connections behind the workers. A request that waits for one keeps its worker.'),
  slowdowns: z
    .array(SlowdownSchema)
    .prefault([])
    .describe('Times in which work takes longer: a slower version, or pauses of a garbage collector.'),
};
