/** The configuration: its types, its JSON Schema and its error messages come from this one schema. */
import { z } from 'zod';
import { MAX_RESPONSES } from '../../core/idempotency/response-store.ts';
import { EnforcementModeSchema } from '../values/enforcement-mode.ts';
import type { Address } from '../values/listen-address.ts';
import { ListenAddress } from '../values/listen-address.ts';
import { ExternalAuthorizationSchema } from './external-authorization-schema.ts';
import { ClientsSchema } from './clients-schema.ts';
import { ListenSchema, Permissions } from './listen-schema.ts';
import { Name, Secret } from './name-schemas.ts';
import { PracticeSchema } from './practice-schema.ts';
import { RouteSchema } from './route-schema.ts';
import { StateSchema } from './state-schema.ts';
import { Ttl } from '../values/ttl.ts';
import { ByteRate, Duration, PositiveDuration, Size } from '../values/unit-schemas.ts';
import { UpstreamSchema } from './upstream-schema.ts';

export interface AdminConfig {
  readonly listen: Address;
  /** Required for writes. Undefined only on a loopback address. */
  readonly token: string | undefined;
  /** Permissions of the Unix socket file, in octal; undefined: those of the umask. */
  readonly permissions: string | undefined;
}

/** The default of `limits.connections`. */
export const DEFAULT_CONNECTIONS = 20_000;

const Workers = z.union([z.literal('auto'), z.int().min(1).max(256)], 'expected auto, or a whole number from 1 to 256');

/** Large enough for any single line. */
const MIN_LOG_BUFFER = 64 * 1024;

/** Room for one message of the usual size. */
const MIN_DELIVERY_BYTES = 1024 ** 2;

const AdminSchema = z.codec(
  z.union(
    [
      z.literal(false),
      // Before the address: encoding takes the first member that accepts, and an address would accept anything.
      z.strictObject({
        listen: ListenAddress.describe('Address of the admin port.'),
        token: Secret.optional().describe('Bearer token required to change anything, at least 16 characters.'),
        permissions: Permissions,
      }),
      ListenAddress,
    ],
    'expected host:port, {listen, token} or false',
  ),
  z.custom<false | AdminConfig>(),
  {
    decode(input) {
      if (input === false) return false;
      if ('kind' in input) return { listen: input, token: undefined, permissions: undefined };
      const { listen, token, permissions } = input;
      return { listen, token, permissions };
    },
    encode(admin) {
      if (admin === false) return false;
      const { listen, token, permissions } = admin;
      return {
        listen,
        ...(token === undefined ? {} : { token }),
        ...(permissions === undefined ? {} : { permissions }),
      };
    },
  },
);

export const ConfigSchema = z.strictObject({
  listen: ListenSchema.prefault('127.0.0.1:8080').describe(
    'Where clients connect: host:port, [::]:port or unix:/path; {address, tls, http2, permissions} for TLS, HTTP/2 or socket permissions.',
  ),
  admin: AdminSchema.prefault('127.0.0.1:9901').describe(
    'Address of the admin port; {listen, token} for addresses other than loopback; false disables it.',
  ),
  telemetry: ListenAddress.optional().describe(
    'Address of a second port with only /metrics, /livez and /readyz, for Prometheus and kubelet.',
  ),
  mode: EnforcementModeSchema.prefault('enforce').describe(
    'enforce: pace, reject and retry; observe: forward every request at once, and only learn, measure and report.',
  ),
  workers: Workers.prefault(1).describe(
    'Worker processes, which share one set of limits: a number, or auto for one per processor.',
  ),
  limits: z
    .strictObject({
      replayMemory: Size.prefault('64MiB').describe('Total memory for request bodies kept for retries.'),
      headers: PositiveDuration.prefault('10s').describe('Maximum time for a client to send its headers.'),
      bodyIdle: PositiveDuration.prefault('30s').describe(
        'Maximum pause of a client while it sends a body or reads a response.',
      ),
      bodyRate: ByteRate.prefault('500B/s').describe(
        'Minimum rate at which a client sends a body, averaged over each bodyIdle spent waiting for it; 0 for no minimum.',
      ),
      readRate: ByteRate.prefault('500B/s').describe(
        'Minimum rate at which a client reads a response, averaged over each bodyIdle in which some is unread; 0 for no minimum.',
      ),
      connections: z
        .int()
        .min(1)
        .max(10_000_000)
        .prefault(DEFAULT_CONNECTIONS)
        .describe('Maximum connections from clients.'),
      requests: z
        .int()
        .min(1)
        .max(10_000_000)
        .prefault(20_000)
        .describe('Maximum concurrent requests: queued, at upstreams, waiting for a retry, or being answered.'),
      keptResponses: z
        .int()
        .min(1)
        .max(10_000_000)
        .prefault(MAX_RESPONSES)
        .describe('Maximum responses kept for repeats of writes (idempotency.replayAnswers); the oldest are evicted.'),
      deliveries: z
        .int()
        .min(1)
        .max(1_000_000_000)
        .prefault(1_000_000)
        .describe(
          'Maximum deliveries that are stored, those that have ended included; beyond it, a new one gets a 503.',
        ),
      deliveryBytes: Size.refine((bytes) => bytes >= MIN_DELIVERY_BYTES, 'must be at least 1MiB')
        .prefault('1GiB')
        .describe('Total size of the messages of deliveries that are stored; beyond it, a new one gets a 503.'),
      deliveryAge: Ttl.prefault('30d').describe(
        'Longest time that a delivery waits since it was accepted, or retried by an operator; after that, it is dead, or an async write unknown.',
      ),
      overload: z
        .strictObject({
          eventLoopDelay: PositiveDuration.prefault('500ms').describe(
            'Maximum event loop delay, averaged over about a second.',
          ),
          heapUsed: z
            .number()
            .min(0.1)
            .max(1)
            .prefault(0.75)
            .describe('Maximum share of the heap in use; 0.1 above it, all new requests are refused.'),
        })
        .prefault({})
        .describe('When this process is overloaded: above these thresholds, some new requests are refused with 503.'),
    })
    .prefault({})
    .describe('Limits on the resources that clients use in this process.'),
  drain: z
    .strictObject({
      delay: Duration.prefault('5s').describe(
        'How long to keep serving while not ready, so that load balancers notice.',
      ),
      timeout: Duration.prefault('25s').describe('Maximum time for requests in flight to end.'),
    })
    .prefault({})
    .describe('How the process shuts down on SIGTERM.'),
  secret: Secret.optional().describe(
    'Key of the client hashes, at least 16 characters. If absent: random for each process, or, with state.store redis, derived from its prefix and password.',
  ),
  forwarded: z.boolean().prefault(false).describe('Also write Forwarded (RFC 7239), next to X-Forwarded-For.'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .prefault('info')
        .describe('The lowest level that is written.'),
      format: z
        .enum(['auto', 'json', 'text', 'pretty'])
        .prefault('auto')
        .describe('How lines are written; auto: as text on a terminal, else as JSON; pretty is another name for text.'),
      buffer: Size.refine((bytes) => bytes >= MIN_LOG_BUFFER, 'must be at least 64KiB')
        .prefault('16MiB')
        .describe('Memory for log lines waiting to be written; lines beyond it are dropped.'),
      successes: z
        .number()
        .min(0)
        .max(1)
        .prefault(1)
        .describe('Share of requests without retry or error that get a log line: 0.01 for one in a hundred.'),
    })
    .prefault({})
    .describe('The log: one line per event.'),
  clients: ClientsSchema.prefault({}).describe('How clients are identified and prioritised.'),
  upstreams: z.record(Name, UpstreamSchema).prefault({}).describe('The APIs behind the proxy, by name.'),
  routes: z
    .array(RouteSchema)
    .prefault([])
    .describe('Which requests go to which upstream; with one upstream and no routes, all go to it.'),
  check: ExternalAuthorizationSchema.optional().describe(
    'Checks for an ingress that asks whether a request may pass and then sends it itself (docs/ingress.md).',
  ),
  state: StateSchema.prefault({ store: 'memory' }).describe(
    'Where learned limits are kept: in the memory of this process, or in Redis for all replicas.',
  ),
  practice: PracticeSchema.optional().describe('The built-in practice upstream, for upstreams with url: practice.'),
});

/** A configuration in effect: durations in milliseconds, rates per second, sizes in bytes, defaults filled in. */
export type Config = Immutable<z.output<typeof ConfigSchema>>;

/** A configuration as written. */
export type ConfigInput = z.input<typeof ConfigSchema>;

export type UpstreamConfig = Config['upstreams'][string];
export type RouteConfig = Config['routes'][number];
export type PollConfig = NonNullable<RouteConfig['poll']>;
export type DeliveryConfig = NonNullable<RouteConfig['deliver']>;
export type AsyncConfig = NonNullable<RouteConfig['async']>;
export type VerifyConfig = NonNullable<RouteConfig['verify']>;
export type CorsConfig = NonNullable<RouteConfig['cors']>;
export type CostConfig = NonNullable<RouteConfig['cost']>;
export type CostDetailsConfig = Exclude<CostConfig, number>;
export type RetryConfig = UpstreamConfig['retry'];
export type RetryOverride = NonNullable<RouteConfig['retry']>;
export type ThrottleConfig = NonNullable<UpstreamConfig['throttle']>;
export type BackOffConfig = RetryConfig['backOff'];
export type ClassConfig = Config['clients']['classes'][string];
export type BackOffOverride = NonNullable<ClassConfig['backOff']>;
export type StateConfig = Config['state'];
export type ClientAuthConfig = NonNullable<Config['clients']['auth']>;
export type CheckConfig = NonNullable<Config['check']>;
export type PracticeConfig = NonNullable<Config['practice']>;

type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T;
