import type { z } from 'zod';
import { isMapping, valueAt } from '../values/plain-object.ts';
import { isProvider } from '../presets/providers.ts';
import type { Config, RetryConfig, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { ConfigSchema } from '../schema/config-schema.ts';
import { redisStateShape } from '../schema/state-schema.ts';

/** The valid parts of a configuration that may be invalid elsewhere, so that one mistake does not hide another. */
export interface PartialConfig {
  /** Undefined if `upstreams` is not a mapping. */
  readonly upstreamNames: readonly string[] | undefined;
  readonly upstreams: ReadonlyMap<string, PartialUpstream>;
  /** In the order written; undefined if `routes` is not a list. */
  readonly routes: readonly PartialRoute[] | undefined;
  readonly listen: Config['listen'] | undefined;
  readonly admin: Config['admin'] | undefined;
  readonly telemetry: Config['telemetry'];
  readonly mode: Config['mode'] | undefined;
  readonly workers: Config['workers'] | undefined;
  readonly replayMemory: Config['limits']['replayMemory'] | undefined;
  readonly deliveryAge: Config['limits']['deliveryAge'] | undefined;
  readonly trustedProxies: Config['clients']['trustedProxies'] | undefined;
  /** Undefined if it is absent or invalid. */
  readonly check: Config['check'];
  readonly clientKeys: Config['clients']['key'] | undefined;
  /** Undefined if it is absent or invalid. */
  readonly auth: Config['clients']['auth'];
  readonly classNames: readonly string[];
  readonly clientNames: readonly string[];
  readonly classes: Config['clients']['classes'] | undefined;
  /** Whether the section is present, valid or not. */
  readonly practice: boolean;
  readonly state: PartialState;
}

type OptionalFields<T, K extends keyof T> = { readonly [P in K]: T[P] | undefined };

type RedisConfig = Extract<Config['state'], { readonly store: 'redis' }>;

export interface PartialState
  extends OptionalFields<
    RedisConfig,
    'url' | 'username' | 'password' | 'sentinelUsername' | 'sentinelPassword' | 'tls'
  > {
  readonly store: Config['state']['store'] | undefined;
}

export interface PartialUpstream
  extends OptionalFields<
    UpstreamConfig,
    | 'provider'
    | 'url'
    | 'urls'
    | 'outlierDetection'
    | 'healthCheck'
    | 'fallback'
    | 'mode'
    | 'tls'
    | 'http2'
    | 'timeout'
    | 'perTryTimeout'
    | 'rateLimit'
    | 'limits'
    | 'quotas'
    | 'queue'
    | 'throttle'
    | 'idempotency'
    | 'accounts'
  > {
  /** Which of the two keys it has, valid or not; undefined if it is not a mapping, or its provider is unknown. */
  readonly urlKeys: readonly ('url' | 'urls')[] | undefined;
  readonly retry: OptionalFields<RetryConfig, 'retryOn' | 'backOff' | 'backOffFor' | 'unkeyedWrites' | 'replayLimit'>;
}

export interface PartialRoute
  extends OptionalFields<
    RouteConfig,
    | 'auth'
    | 'check'
    | 'stickyAccount'
    | 'coalesce'
    | 'cost'
    | 'upstream'
    | 'timeout'
    | 'perTryTimeout'
    | 'retry'
    | 'poll'
    | 'deliver'
    | 'async'
    | 'cors'
    | 'verify'
  > {
  /** Which requests it matches; undefined if that is invalid. */
  readonly match: Pick<RouteConfig, 'path' | 'host' | 'methods'> | undefined;
}

const { shape } = ConfigSchema;
const upstreamShape = shape.upstreams.unwrap().valueType.shape;
const retryShape = upstreamShape.retry.unwrap().shape;
const RouteShape = shape.routes.unwrap().element;
const RouteMatch = RouteShape.pick({ path: true, host: true, methods: true }).strip();

/** @param root as written, a mapping */
export function parsePartialConfig(root: object): PartialConfig {
  const { upstreams = {}, routes = [] } = {
    upstreams: valueAt(root, ['upstreams']),
    routes: valueAt(root, ['routes']),
  };
  const named = isMapping(upstreams) ? Object.entries(upstreams) : undefined;
  return {
    upstreamNames: named?.map(([name]) => name),
    upstreams: new Map((named ?? []).map(([name, upstream]) => [name, parsePartialUpstream(upstream)])),
    routes: Array.isArray(routes) ? routes.map((route) => parsePartialRoute(route)) : undefined,
    listen: parseIfValid(shape.listen, valueAt(root, ['listen'])),
    admin: parseIfValid(shape.admin, valueAt(root, ['admin'])),
    telemetry: parseIfValid(shape.telemetry, valueAt(root, ['telemetry'])),
    mode: parseIfValid(shape.mode, valueAt(root, ['mode'])),
    workers: parseIfValid(shape.workers, valueAt(root, ['workers'])),
    replayMemory: parseIfValid(shape.limits.unwrap().shape.replayMemory, valueAt(root, ['limits', 'replayMemory'])),
    deliveryAge: parseIfValid(shape.limits.unwrap().shape.deliveryAge, valueAt(root, ['limits', 'deliveryAge'])),
    trustedProxies: parseIfValid(
      shape.clients.unwrap().shape.trustedProxies,
      valueAt(root, ['clients', 'trustedProxies']),
    ),
    check: parseIfValid(shape.check, valueAt(root, ['check'])),
    clientKeys: parseIfValid(shape.clients.unwrap().shape.key, valueAt(root, ['clients', 'key'])),
    auth: parseIfValid(shape.clients.unwrap().shape.auth, valueAt(root, ['clients', 'auth'])),
    classNames: Object.keys(valueAt(root, ['clients', 'classes']) ?? {}),
    clientNames: Object.keys(valueAt(root, ['clients', 'names']) ?? {}),
    classes: parseIfValid(shape.clients.unwrap().shape.classes, valueAt(root, ['clients', 'classes'])),
    practice: valueAt(root, ['practice']) !== undefined,
    state: parsePartialState(valueAt(root, ['state'])),
  };
}

const STATE_STORES = ['memory', 'sqlite', 'redis'] as const;

function parsePartialState(written: unknown): PartialState {
  const store = valueAt(written, ['store']);
  return {
    store: STATE_STORES.find((known) => known === store),
    url: parseIfValid(redisStateShape.url, valueAt(written, ['url'])),
    username: parseIfValid(redisStateShape.username, valueAt(written, ['username'])),
    password: parseIfValid(redisStateShape.password, valueAt(written, ['password'])),
    sentinelUsername: parseIfValid(redisStateShape.sentinelUsername, valueAt(written, ['sentinelUsername'])),
    sentinelPassword: parseIfValid(redisStateShape.sentinelPassword, valueAt(written, ['sentinelPassword'])),
    tls: parseIfValid(redisStateShape.tls, valueAt(written, ['tls'])),
  };
}

/** @param written the mapping of an upstream, which may be invalid or incomplete */
export function parsePartialUpstream(written: unknown): PartialUpstream {
  return {
    urlKeys: hasKnownProvider(written)
      ? (['url', 'urls'] as const).filter((key) => Object.hasOwn(written, key))
      : undefined,
    provider: parseIfValid(upstreamShape.provider, valueAt(written, ['provider'])),
    url: parseIfValid(upstreamShape.url, valueAt(written, ['url'])),
    urls: parseIfValid(upstreamShape.urls, valueAt(written, ['urls'])),
    outlierDetection: parseIfValid(upstreamShape.outlierDetection, valueAt(written, ['outlierDetection'])),
    fallback: parseIfValid(upstreamShape.fallback, valueAt(written, ['fallback'])),
    mode: parseIfValid(upstreamShape.mode, valueAt(written, ['mode'])),
    healthCheck: parseIfValid(upstreamShape.healthCheck, valueAt(written, ['healthCheck'])),
    tls: parseIfValid(upstreamShape.tls, valueAt(written, ['tls'])),
    http2: parseIfValid(upstreamShape.http2, valueAt(written, ['http2'])),
    timeout: parseIfValid(upstreamShape.timeout, valueAt(written, ['timeout'])),
    perTryTimeout: parseIfValid(upstreamShape.perTryTimeout, valueAt(written, ['perTryTimeout'])),
    rateLimit: parseIfValid(upstreamShape.rateLimit, valueAt(written, ['rateLimit'])),
    limits: parseIfValid(upstreamShape.limits, valueAt(written, ['limits'])),
    quotas: parseIfValid(upstreamShape.quotas, valueAt(written, ['quotas'])),
    accounts: parseIfValid(upstreamShape.accounts, valueAt(written, ['accounts'])),
    queue: parseIfValid(upstreamShape.queue, valueAt(written, ['queue'])),
    throttle: parseIfValid(upstreamShape.throttle, valueAt(written, ['throttle'])),
    idempotency: parseIfValid(upstreamShape.idempotency, valueAt(written, ['idempotency'])),
    retry: {
      retryOn: parseIfValid(retryShape.retryOn, valueAt(written, ['retry', 'retryOn'])),
      backOff: parseIfValid(retryShape.backOff, valueAt(written, ['retry', 'backOff'])),
      backOffFor: parseIfValid(retryShape.backOffFor, valueAt(written, ['retry', 'backOffFor'])),
      unkeyedWrites: parseIfValid(retryShape.unkeyedWrites, valueAt(written, ['retry', 'unkeyedWrites'])),
      replayLimit: parseIfValid(retryShape.replayLimit, valueAt(written, ['retry', 'replayLimit'])),
    },
  };
}

/** False for an unknown provider: its preset might have supplied the url. */
function hasKnownProvider(written: unknown): written is object {
  const provider = valueAt(written, ['provider']);
  return isMapping(written) && (provider === undefined || isProvider(provider));
}

function parsePartialRoute(written: unknown): PartialRoute {
  return {
    match: parseIfValid(RouteMatch, written),
    auth: parseIfValid(RouteShape.shape.auth, valueAt(written, ['auth'])),
    check: parseIfValid(RouteShape.shape.check, valueAt(written, ['check'])),
    coalesce: parseIfValid(RouteShape.shape.coalesce, valueAt(written, ['coalesce'])),
    stickyAccount: parseIfValid(RouteShape.shape.stickyAccount, valueAt(written, ['stickyAccount'])),
    cost: parseIfValid(RouteShape.shape.cost, valueAt(written, ['cost'])),
    upstream: parseIfValid(RouteShape.shape.upstream, valueAt(written, ['upstream'])),
    timeout: parseIfValid(RouteShape.shape.timeout, valueAt(written, ['timeout'])),
    perTryTimeout: parseIfValid(RouteShape.shape.perTryTimeout, valueAt(written, ['perTryTimeout'])),
    retry: parseIfValid(RouteShape.shape.retry, valueAt(written, ['retry'])),
    cors: parseIfValid(RouteShape.shape.cors, valueAt(written, ['cors'])),
    poll: parseIfValid(RouteShape.shape.poll, valueAt(written, ['poll'])),
    deliver: parseIfValid(RouteShape.shape.deliver, valueAt(written, ['deliver'])),
    async: parseIfValid(RouteShape.shape.async, valueAt(written, ['async'])),
    verify: parseIfValid(RouteShape.shape.verify, valueAt(written, ['verify'])),
  };
}

/** The decoded value; undefined if it is invalid. */
export function parseIfValid<T extends z.ZodType>(schema: T, value: unknown): z.output<T> | undefined {
  const result = schema.safeParse(value);
  return result.success ? result.data : undefined;
}
