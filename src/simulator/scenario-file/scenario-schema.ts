/** The language of scenarios: what it has in common with the configuration is the configuration's own. */
import { z } from 'zod';
import { HINT_STYLES } from '../upstream/hint-style.ts';
import { OUTAGE_KINDS } from '../upstream/upstream-model.ts';
import { Clients } from '../../config/schema/clients-schema.ts';
import { Goals } from './goals-schema.ts';
import { Limit } from '../../config/schema/simulated-limit-schema.ts';
import { EACH, LimitMatch, LimitName } from '../../config/schema/nested-limits-schema.ts';
import { Method, Name } from '../../config/schema/name-schemas.ts';
import { ConfigSchema } from '../../config/schema/config-schema.ts';
import { Duration, PositiveDuration, Rate, readRate, writeRate } from '../../config/values/unit-schemas.ts';
import { Upstream } from '../../config/schema/upstream-schema.ts';
import { misread, written } from '../../config/values/text-codec.ts';

const mean = Duration.describe('The mean.');

/** A duration is always the same; else it has a shape. */
const Latency = z.union([
  Duration.transform((constant) => ({ kind: 'constant' as const, mean: constant })),
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('constant').describe('Always the same.'), mean }),
    z.strictObject({
      kind: z.literal('uniform').describe('Anything within mean ± spread.'),
      mean,
      spread: Duration.exactOptional().describe('At most the mean, and the mean if absent.'),
    }),
    z.strictObject({ kind: z.literal('exponential').describe('Mostly short, now and then long.'), mean }),
    z.strictObject({
      kind: z.literal('lognormal').describe('As services measure it: few are short, and some very long.'),
      mean,
      sigma: z.number().min(0).max(5).exactOptional().describe('Of the logarithm; 0.5 if absent.'),
    }),
  ]),
]);

const at = Duration.describe('When, from the start.');
const from = Duration.describe('The start of it.');
const to = PositiveDuration.describe('The end of it.');

/** A step of a limit, in the unit of its kind. */
const StepLimit = written<number>({
  expected: 'a rate such as 40/s for a bucket, a number such as 40 for a window or places in flight',
  forms: [
    { type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?/[smh]$` },
    { type: 'integer', minimum: 1, maximum: 1_000_000 },
  ],
  read(input) {
    if (typeof input === 'string') return readRate(input);
    if (Number.isInteger(input) && input >= 1 && input <= 1_000_000) return { ok: true, value: input };
    return misread('expected a rate such as 40/s, or a whole number from 1 to 1000000');
  },
  write: (limit) => limit,
});

const UpstreamModel = z.strictObject({
  limit: Limit.describe('The limit it enforces.'),
  latency: Latency.prefault('0s').describe('How long the work of a request takes: a duration, or {kind, mean}.'),
  refusalLatency: Latency.prefault('0s').describe('How long a refusal takes.'),
  hints: z.enum(HINT_STYLES).prefault('none').describe('What it says of its limit.'),
  limits: z
    .array(
      z.strictObject({
        name: LimitName.describe('What a refusal for it is told to be about, where it gives a reason.'),
        match: LimitMatch.prefault({}).describe('Which requests stand under it; all if absent.'),
        each: z.array(z.enum(EACH)).prefault([]).describe('What else has a limit of its own for each value: method.'),
        limit: Limit.describe('The limit it enforces.'),
        reason: z.string().min(1).max(64).exactOptional().describe('What a refusal for it gives as its reason.'),
      }),
    )
    .prefault([])
    .describe('Limits of some requests beneath limit: a request has to pass all that it stands under.'),
  reason: z.string().min(1).max(64).exactOptional().describe('What a refusal for limit itself gives as its reason.'),
  steps: z
    .array(z.strictObject({ at, limit: StepLimit.describe('A rate for a bucket; a number for what counts.') }))
    .prefault([])
    .describe('Changes of the limit.'),
  errors: z
    .array(
      z.strictObject({
        probability: z.number().min(0).max(1).describe('The part of requests that fail.'),
        status: z.int().min(400).max(599).exactOptional().describe('503 if absent.'),
        from: from.exactOptional(),
        to: to.exactOptional(),
      }),
    )
    .prefault([])
    .describe('Requests that the limit has let pass, and that fail at random.'),
  outages: z
    .array(
      z.strictObject({ from, to, how: z.enum(OUTAGE_KINDS).prefault('refuse').describe('What a connection meets.') }),
    )
    .prefault([])
    .describe('When nothing is served.'),
});

/** Requests a second; 0 is silence. */
const Demand = written<number>({
  expected: 'a rate such as 100/s, or 0',
  forms: [{ type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?/[smh]$` }, { const: 0 }],
  read: (input) => (input === 0 ? { ok: true, value: 0 } : readRate(input)),
  write: (rate) => (rate === 0 ? 0 : writeRate(rate)),
});

const Group = z.strictObject({
  name: Name.prefault('clients').describe('What reports call them.'),
  count: z.int().min(1).max(10_000_000).prefault(1).describe('How many they are.'),
  rate: Rate.exactOptional().describe('What each of them wants to send.'),
  total: Rate.exactOptional().describe('What they want to send together.'),
  weight: z.number().min(0.01).max(1000).prefault(1).describe('The share of each, beside the 1 of others.'),
  from: Duration.prefault('0s').describe('When they come.'),
  to: PositiveDuration.exactOptional().describe('When they go.'),
  steps: z
    .array(
      z.strictObject({
        at,
        rate: Demand.exactOptional().describe('What each of them wants to send from then on; 0 is silence.'),
        total: Demand.exactOptional().describe('What they want to send together from then on; 0 is silence.'),
      }),
    )
    .prefault([])
    .describe('Changes of what they want to send.'),
  honoursRetryAfter: z.boolean().prefault(false).describe('Whether they wait when they are told to.'),
  method: Method.prefault('GET').describe('The method of their requests.'),
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, 'expected a path such as /v1/charges')
    .prefault('/')
    .describe('The path of their requests.'),
  keyed: z.boolean().prefault(false).describe('Whether their requests carry an idempotency key.'),
});

const Policy = z.strictObject({
  ...Upstream.pick({
    provider: true,
    retry: true,
    rateLimit: true,
    limits: true,
    queue: true,
    timeout: true,
    perTryTimeout: true,
  }).shape,
  maxTracked: Clients.shape.maxTracked,
});

export const ScenarioSchema = z.strictObject({
  title: z.string().min(1).exactOptional().describe('What it is, in a line.'),
  about: z.string().min(1).exactOptional().describe('What it shows.'),
  duration: PositiveDuration.prefault('2m').describe('How long it lasts, at most 24h.'),
  warmup: Duration.prefault('0s').describe('What happens before is not counted.'),
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).prefault(1).describe('Equal seeds give equal runs.'),
  upstream: UpstreamModel.describe('The API behind the proxy.'),
  network: Duration.prefault('1ms').describe('One way between proxy and upstream.'),
  clients: z.array(Group).min(1).describe('Groups of clients that are alike.'),
  replicas: z.int().min(1).max(1000).prefault(1).describe('Proxies, each with its part of every client’s requests.'),
  shared: z.boolean().prefault(false).describe('Whether the replicas share one rate, at once and at no cost.'),
  lease: Duration.exactOptional().describe(
    'The replicas lease from one lender, as workers do from their primary: how far away it is, one way.',
  ),
  pool: Duration.exactOptional().describe(
    'The replicas keep their limits in a pool, as they do in Redis: how far away it is, one way.',
  ),
  pauses: z.array(z.strictObject({ from, to })).prefault([]).describe('When the machine of the proxies sleeps.'),
  mode: ConfigSchema.shape.mode,
  policy: Policy.prefault({}).describe('What the configuration says of an upstream; its defaults if absent.'),
  goals: Goals.prefault({}).describe('What it should come to.'),
});

/** A scenario as read: durations in milliseconds, rates a second, defaults filled in. */
export type ScenarioConfig = z.output<typeof ScenarioSchema>;

/** A scenario as written. */
export type ScenarioInput = z.input<typeof ScenarioSchema>;
