/** The configuration: one schema is its types, its JSON Schema and its mistakes. */
import { z } from 'zod';
import type { Address } from '../values/listen-address.ts';
import { ListenAddress } from '../values/listen-address.ts';
import { Check } from './external-authorization-schema.ts';
import { Clients } from './clients-schema.ts';
import { Listen, Permissions } from './listen-schema.ts';
import { Name } from './name-schemas.ts';
import { Practice } from './practice-schema.ts';
import { Route } from './route-schema.ts';
import { State } from './state-schema.ts';
import { ByteRate, Duration, PositiveDuration, Size } from '../values/unit-schemas.ts';
import { Upstream } from './upstream-schema.ts';

export interface AdminListener {
  readonly listen: Address;
  /** Wanted for writes. Undefined on a loopback address only. */
  readonly token: string | undefined;
  /** Of the file of a Unix socket, in octal; undefined: as the umask has it. */
  readonly permissions: string | undefined;
}

const Workers = z.union([z.literal('auto'), z.int().min(1).max(256)], 'expected auto, or a whole number from 1 to 256');

/** Any line fits in. */
const LEAST_LOG_BUFFER = 64 * 1024;

/** Long enough that nobody guesses it. */
const Secret = z.string().min(16);

const Admin = z.codec(
  z.union(
    [
      z.literal(false),
      // Before the address: encoding takes the first that fits, and an address would try anything.
      z.strictObject({
        listen: ListenAddress.describe('Where the admin port listens.'),
        token: Secret.optional().describe('What a client has to show to change anything, at least 16 characters.'),
        permissions: Permissions,
      }),
      ListenAddress,
    ],
    'expected host:port, {listen, token} or false',
  ),
  z.custom<false | AdminListener>(),
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
  listen: Listen.prefault('127.0.0.1:8080').describe(
    'Where clients connect: host:port, [::]:port or unix:/path; {address, tls, http2, permissions} for more than plain HTTP.',
  ),
  admin: Admin.prefault('127.0.0.1:9901').describe(
    'Where the admin port listens; {listen, token} for other addresses than loopback; false turns it off.',
  ),
  telemetry: ListenAddress.optional().describe(
    'A second port with only /metrics, /livez and /readyz, for Prometheus and kubelet.',
  ),
  mode: z
    .enum(['enforce', 'observe'])
    .prefault('enforce')
    .describe('observe: learn, measure and report, but pace, refuse and retry nothing; enforce does it.'),
  workers: Workers.prefault(1).describe(
    'Processes that serve, with one limit for all of them: a number, or auto for one on each processor.',
  ),
  limits: z
    .strictObject({
      replayMemory: Size.prefault('64MiB').describe('Memory for request bodies kept for a retry, in all.'),
      headers: PositiveDuration.prefault('10s').describe('How long a client may take to send its headers.'),
      bodyIdle: PositiveDuration.prefault('30s').describe(
        'How long a client may pause within its body, or leave an answer of ours unread.',
      ),
      bodyRate: ByteRate.prefault('500B/s').describe(
        'How fast a body has to come, on average over each bodyIdle of waiting for its client; 0 for any speed.',
      ),
      readRate: ByteRate.prefault('500B/s').describe(
        'How fast a client has to read its answer, on average over each bodyIdle in which it leaves some unread; 0 for any speed.',
      ),
      connections: z.int().min(1).max(10_000_000).prefault(20_000).describe('Connections from clients, at most.'),
      requests: z
        .int()
        .min(1)
        .max(10_000_000)
        .prefault(20_000)
        .describe('Requests at a time, at most: in queues, at upstreams, asleep before a retry, being answered.'),
      overload: z
        .strictObject({
          eventLoopDelay: PositiveDuration.prefault('500ms').describe(
            'How late the event loop may be, over about a second.',
          ),
          heapUsed: z
            .number()
            .min(0.1)
            .max(1)
            .prefault(0.75)
            .describe('How much of the heap may be in use; a tenth further on, all new requests are turned away.'),
        })
        .prefault({})
        .describe('When this process itself cannot keep up: beyond this, new requests are turned away with 503.'),
    })
    .prefault({})
    .describe('What clients may take of this process.'),
  drain: z
    .strictObject({
      delay: Duration.prefault('5s').describe('How long to serve on while not ready, so that balancers notice.'),
      timeout: Duration.prefault('25s').describe('How long requests in flight may take to end.'),
    })
    .prefault({})
    .describe('How the process goes away on SIGTERM.'),
  secret: Secret.optional().describe(
    'Keys the hashes of clients, at least 16 characters. If absent: random for each process, or, with state.store redis, made of its prefix and password.',
  ),
  forwarded: z.boolean().prefault(false).describe('Write Forwarded (RFC 7239) beside X-Forwarded-For.'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .prefault('info')
        .describe('The least important level that is written.'),
      buffer: Size.refine((bytes) => bytes >= LEAST_LOG_BUFFER, 'must be at least 64KiB')
        .prefault('16MiB')
        .describe('Lines that wait to be written, in all; while nobody reads them, those beyond it are dropped.'),
      successes: z
        .number()
        .min(0)
        .max(1)
        .prefault(1)
        .describe('The share of requests that went well at once that get a line: 0.01 for one in a hundred.'),
    })
    .prefault({})
    .describe('The log, one line of JSON an event.'),
  clients: Clients.prefault({}).describe('Who the clients are, and who goes first.'),
  upstreams: z.record(Name, Upstream).prefault({}).describe('The APIs behind this proxy, by name.'),
  routes: z
    .array(Route)
    .prefault([])
    .describe('Which requests go where; with one upstream and no routes, all go to it.'),
  check: Check.optional().describe(
    'Answers an ingress that asks whether a request may pass, and sends it itself (docs/ingress.md).',
  ),
  state: State.prefault({ store: 'memory' }).describe(
    'Where what limits have learned is kept: in the memory of this process, or in Redis for all replicas.',
  ),
  practice: Practice.optional().describe(
    'The upstream that this process plays itself, where an upstream has url: practice.',
  ),
});

/** A configuration in effect: durations in milliseconds, rates a second, sizes in bytes, defaults filled in. */
export type Config = Immutable<z.output<typeof ConfigSchema>>;

/** A configuration as written. */
export type ConfigInput = z.input<typeof ConfigSchema>;

export type UpstreamConfig = Config['upstreams'][string];
export type RouteConfig = Config['routes'][number];
export type PollConfig = NonNullable<RouteConfig['poll']>;
export type CorsConfig = NonNullable<RouteConfig['cors']>;
export type RetryConfig = UpstreamConfig['retry'];
export type RetryOverride = NonNullable<RouteConfig['retry']>;
export type ThrottleConfig = NonNullable<UpstreamConfig['throttle']>;
export type BackOffConfig = RetryConfig['backOff'];
export type ClassConfig = Config['clients']['classes'][string];
export type BackOffOverride = NonNullable<ClassConfig['backOff']>;
export type StateConfig = Config['state'];
export type CheckConfig = NonNullable<Config['check']>;
export type PracticeConfig = NonNullable<Config['practice']>;

type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T;
