/** The schema of scenario files. Parts that the configuration has too use the configuration's schema. */
import { z } from 'zod';
import { HINT_STYLES } from '../../config/schema/hint-styles.ts';
import { OUTAGE_KINDS } from '../upstream/upstream-model.ts';
import { ClientQuotasSchema } from '../../config/schema/limits/quota-schema.ts';
import { ClientsSchema } from '../../config/schema/clients-schema.ts';
import { GoalsSchema } from './goals-schema.ts';
import { LatencySchema } from '../../config/schema/service-schema.ts';
import { NestableLimitSchema, SimulatedLimitSchema } from '../../config/schema/simulated-limit-schema.ts';
import {
  LIMIT_DIMENSIONS,
  LimitMatchSchema,
  LimitNameSchema,
} from '../../config/schema/limits/nested-limits-schema.ts';
import { Method, Name, NAME_EXPECTED, NAME_PATTERN } from '../../config/schema/name-schemas.ts';
import { ConfigSchema } from '../../config/schema/config-schema.ts';
import { Duration, PositiveDuration, Rate, parseRate, formatRate } from '../../config/values/unit-schemas.ts';
import { UpstreamSchema } from '../../config/schema/upstream-schema.ts';
import { parseFailure, textCodec } from '../../config/values/text-codec.ts';

const at = Duration.describe('The time since the start.');
const from = Duration.describe('The start.');
const to = PositiveDuration.describe('The end.');

const match = LimitMatchSchema.prefault({}).describe('The requests it applies to; all if absent.');

/** A step of a limit, in the unit of its kind. */
const StepLimitSchema = textCodec<number>({
  expected: 'a rate such as 40/s for a bucket, a number such as 40 for a window, requests in flight or workers',
  forms: [
    { type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?/[smh]$` },
    { type: 'integer', minimum: 1, maximum: 1_000_000 },
  ],
  parse(input) {
    if (typeof input === 'string') return parseRate(input);
    if (Number.isInteger(input) && input >= 1 && input <= 1_000_000) return { ok: true, value: input };
    return parseFailure('expected a rate such as 40/s, or a whole number from 1 to 1000000');
  },
  format: (limit) => limit,
});

const UpstreamModelSchema = z.strictObject({
  limit: SimulatedLimitSchema.describe('The limit it enforces.'),
  latency: LatencySchema.prefault('0s').describe('The time a request takes: a duration, or {kind, mean}.'),
  latencies: z
    .array(z.strictObject({ match, latency: LatencySchema.describe('The time they take.') }))
    .prefault([])
    .describe('Other times for some requests: the first that matches.'),
  refusalLatency: LatencySchema.prefault('0s').describe('The time a rejection takes.'),
  hints: z.enum(HINT_STYLES).prefault('none').describe('How it reports its limit.'),
  retryAfter: PositiveDuration.exactOptional().describe(
    'The Retry-After of each rejection, instead of the exact wait.',
  ),
  limits: z
    .array(
      z.strictObject({
        name: LimitNameSchema.describe('Names the limit in a rejection that gives a reason.'),
        match,
        each: z.array(z.enum(LIMIT_DIMENSIONS)).prefault([]).describe('Also makes a limit for each value: method.'),
        limit: NestableLimitSchema.describe('The limit it enforces.'),
        reason: z.string().min(1).max(64).exactOptional().describe('The reason that a rejection by it gives.'),
      }),
    )
    .prefault([])
    .describe('Limits of some requests, nested in limit. A request must pass each that applies to it.'),
  reason: z.string().min(1).max(64).exactOptional().describe('The reason that a rejection by limit itself gives.'),
  accounts: z
    .array(
      z.strictObject({
        name: z.string().regex(NAME_PATTERN, NAME_EXPECTED).describe('The name of the account.'),
        limit: NestableLimitSchema.describe('The limit of the account.'),
      }),
    )
    .prefault([])
    .describe('Accounts that the proxy may use, each with a limit in place of limit.'),
  steps: z
    .array(
      z.strictObject({
        at,
        limit: StepLimitSchema.describe('A rate for a bucket; a number for a window, requests in flight or workers.'),
      }),
    )
    .prefault([])
    .describe('Changes of the limit.'),
  errors: z
    .array(
      z.strictObject({
        probability: z.number().min(0).max(1).describe('The share of requests that fail.'),
        status: z.int().min(400).max(599).exactOptional().describe('503 if absent.'),
        from: from.exactOptional(),
        to: to.exactOptional(),
      }),
    )
    .prefault([])
    .describe('Random failures of requests that the limit accepted.'),
  outages: z
    .array(z.strictObject({ from, to, how: z.enum(OUTAGE_KINDS).prefault('refuse').describe('How connections fail.') }))
    .prefault([])
    .describe('When nothing is served.'),
});

/** Requests a second; 0: none. */
const DemandSchema = textCodec<number>({
  expected: 'a rate such as 100/s, or 0',
  forms: [{ type: 'string', pattern: String.raw`^\d+(?:\.\d{1,4})?/[smh]$` }, { const: 0 }],
  parse: (input) => (input === 0 ? { ok: true, value: 0 } : parseRate(input)),
  format: (rate) => (rate === 0 ? 0 : formatRate(rate)),
});

const ClientGroupSchema = z.strictObject({
  name: Name.prefault('clients').describe('The name of the group in reports.'),
  count: z.int().min(1).max(10_000_000).prefault(1).describe('The number of clients.'),
  rate: Rate.exactOptional().describe('The demand of each client.'),
  total: Rate.exactOptional().describe('The demand of all clients together.'),
  weight: z.number().min(0.01).max(1000).prefault(1).describe('The weight of each client; others have 1.'),
  class: Name.exactOptional().describe('The class of policy.classes that they belong to, by proven names.'),
  from: Duration.prefault('0s').describe('When they start.'),
  to: PositiveDuration.exactOptional().describe('When they stop.'),
  steps: z
    .array(
      z.strictObject({
        at,
        rate: DemandSchema.exactOptional().describe('The demand of each client from then on; 0: none.'),
        total: DemandSchema.exactOptional().describe('The demand of all clients together from then on; 0: none.'),
      }),
    )
    .prefault([])
    .describe('Changes of the demand.'),
  timeout: PositiveDuration.exactOptional().describe(
    'They disconnect after this time without a response; if absent, they wait.',
  ),
  honoursRetryAfter: z.boolean().prefault(false).describe('Whether they honour Retry-After.'),
  method: Method.prefault('GET').describe('The method of their requests.'),
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, 'expected a path such as /v1/charges')
    .prefault('/')
    .describe('The path of their requests.'),
  cost: z
    .union([
      z.number().positive().max(1e6),
      z.strictObject({
        min: z.number().min(0).max(1e6).describe('The least.'),
        max: z.number().positive().max(1e6).describe('The highest.'),
      }),
    ])
    .exactOptional()
    .describe('What each of their requests costs at limit, in units: a number, or {min, max}, uniformly distributed.'),
  keyed: z.boolean().prefault(false).describe('Whether their requests carry an idempotency key.'),
});

/** The quotas of a class, as in `clients.classes` of the configuration. The groups name their classes, and their weights. */
const ScenarioClassSchema = z.strictObject({
  quota: ClientQuotasSchema.optional().describe('Requests that all its clients together may send in a period.'),
  perClient: z
    .strictObject({ quota: ClientQuotasSchema.describe('Requests that each client may send in a period.') })
    .optional()
    .describe('The same for each of its clients.'),
});

const ScenarioPolicySchema = z.strictObject({
  ...UpstreamSchema.pick({
    provider: true,
    retry: true,
    rateLimit: true,
    limits: true,
    quotas: true,
    queue: true,
    timeout: true,
    perTryTimeout: true,
  }).shape,
  maxTracked: ClientsSchema.shape.maxTracked,
  classes: z.record(Name, ScenarioClassSchema).prefault({}).describe('Classes of clients with quotas, by name.'),
});

export const ScenarioSchema = z.strictObject({
  title: z.string().min(1).exactOptional().describe('A one-line title.'),
  about: z.string().min(1).exactOptional().describe('A description.'),
  duration: PositiveDuration.prefault('2m').describe('The length of the run, at most 24h.'),
  warmup: Duration.prefault('0s').describe('The time at the start that is not counted.'),
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).prefault(1).describe('Equal seeds give equal runs.'),
  upstream: UpstreamModelSchema.describe('The API behind the proxy.'),
  network: Duration.prefault('1ms').describe('Network delay between proxy and upstream, one way.'),
  clients: z.array(ClientGroupSchema).min(1).describe('Groups of identical clients.'),
  replicas: z
    .int()
    .min(1)
    .max(1000)
    .prefault(1)
    .describe('The number of proxies. Each receives a part of every client’s requests.'),
  shared: z.boolean().prefault(false).describe('Whether the replicas share one rate, instantly and at no cost.'),
  lease: Duration.exactOptional().describe(
    'The replicas lease from one server, as workers do from their primary: its delay, one way.',
  ),
  pool: Duration.exactOptional().describe('The replicas keep their limits in a pool, as in Redis: its delay, one way.'),
  pauses: z.array(z.strictObject({ from, to })).prefault([]).describe('When the proxies’ machine sleeps.'),
  mode: ConfigSchema.shape.mode,
  policy: ScenarioPolicySchema.prefault({}).describe(
    'The settings of an upstream, as in the configuration; its defaults if absent.',
  ),
  goals: GoalsSchema.prefault({}).describe('The goals of the run.'),
});

/** A scenario as read: durations in milliseconds, rates a second, defaults filled in. */
export type ScenarioConfig = z.output<typeof ScenarioSchema>;

/** A scenario as written. */
export type ScenarioInput = z.input<typeof ScenarioSchema>;
