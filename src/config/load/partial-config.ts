import type { z } from 'zod';
import { isMapping, valueAt } from './schema-issues.ts';
import { isProvider } from '../presets/providers.ts';
import type { Config, RetryConfig, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { ConfigSchema } from '../schema/config-schema.ts';
import { redisShape } from '../schema/state-schema.ts';

/** The sound parts of a configuration that may be unsound elsewhere, so that one mistake does not hide another. */
export interface Draft {
  /** Undefined where `upstreams` is no mapping. */
  readonly upstreamNames: readonly string[] | undefined;
  readonly upstreams: ReadonlyMap<string, DraftUpstream>;
  /** In the order written; undefined where `routes` is no list. */
  readonly routes: readonly DraftRoute[] | undefined;
  readonly listen: Config['listen'] | undefined;
  readonly admin: Config['admin'] | undefined;
  readonly telemetry: Config['telemetry'];
  readonly workers: Config['workers'] | undefined;
  readonly replayMemory: Config['limits']['replayMemory'] | undefined;
  readonly trustedProxies: Config['clients']['trustedProxies'] | undefined;
  /** Undefined where there is none, or it is not sound. */
  readonly check: Config['check'];
  readonly clientKeys: Config['clients']['key'] | undefined;
  readonly classNames: readonly string[];
  readonly clientNames: readonly string[];
  readonly classes: Config['clients']['classes'] | undefined;
  /** Whether there is one, sound or not. */
  readonly practice: boolean;
  readonly state: DraftState;
}

type Parts<T, K extends keyof T> = { readonly [P in K]: T[P] | undefined };

type RedisConfig = Extract<Config['state'], { readonly store: 'redis' }>;

export interface DraftState
  extends Parts<RedisConfig, 'url' | 'username' | 'password' | 'sentinelUsername' | 'sentinelPassword' | 'tls'> {
  readonly store: Config['state']['store'] | undefined;
}

export interface DraftUpstream
  extends Parts<
    UpstreamConfig,
    | 'url'
    | 'urls'
    | 'outlierDetection'
    | 'tls'
    | 'http2'
    | 'timeout'
    | 'perTryTimeout'
    | 'rateLimit'
    | 'limits'
    | 'queue'
    | 'throttle'
    | 'idempotency'
  > {
  /** What it says of where it can be reached, sound or not; undefined where it is no mapping, or its provider is unknown. */
  readonly reached: readonly ('url' | 'urls')[] | undefined;
  readonly retry: Parts<RetryConfig, 'retryOn' | 'backOff' | 'backOffFor' | 'unkeyedWrites' | 'replayLimit'>;
}

export interface DraftRoute
  extends Parts<RouteConfig, 'check' | 'upstream' | 'timeout' | 'perTryTimeout' | 'retry' | 'poll' | 'cors'> {
  /** What requests it takes; undefined where that is not sound. */
  readonly takes: Pick<RouteConfig, 'path' | 'host' | 'methods'> | undefined;
}

const { shape } = ConfigSchema;
const upstreamShape = shape.upstreams.unwrap().valueType.shape;
const retryShape = upstreamShape.retry.unwrap().shape;
const Route = shape.routes.unwrap().element;
const Takes = Route.pick({ path: true, host: true, methods: true }).strip();

/** @param root as written, a mapping */
export function draft(root: object): Draft {
  const { upstreams = {}, routes = [] } = {
    upstreams: valueAt(root, ['upstreams']),
    routes: valueAt(root, ['routes']),
  };
  const named = isMapping(upstreams) ? Object.entries(upstreams) : undefined;
  return {
    upstreamNames: named?.map(([name]) => name),
    upstreams: new Map((named ?? []).map(([name, upstream]) => [name, draftUpstream(upstream)])),
    routes: Array.isArray(routes) ? routes.map((route) => draftRoute(route)) : undefined,
    listen: sound(shape.listen, valueAt(root, ['listen'])),
    admin: sound(shape.admin, valueAt(root, ['admin'])),
    telemetry: sound(shape.telemetry, valueAt(root, ['telemetry'])),
    workers: sound(shape.workers, valueAt(root, ['workers'])),
    replayMemory: sound(shape.limits.unwrap().shape.replayMemory, valueAt(root, ['limits', 'replayMemory'])),
    trustedProxies: sound(shape.clients.unwrap().shape.trustedProxies, valueAt(root, ['clients', 'trustedProxies'])),
    check: sound(shape.check, valueAt(root, ['check'])),
    clientKeys: sound(shape.clients.unwrap().shape.key, valueAt(root, ['clients', 'key'])),
    classNames: Object.keys(valueAt(root, ['clients', 'classes']) ?? {}),
    clientNames: Object.keys(valueAt(root, ['clients', 'names']) ?? {}),
    classes: sound(shape.clients.unwrap().shape.classes, valueAt(root, ['clients', 'classes'])),
    practice: valueAt(root, ['practice']) !== undefined,
    state: draftState(valueAt(root, ['state'])),
  };
}

function draftState(written: unknown): DraftState {
  const store = valueAt(written, ['store']);
  return {
    store: store === 'memory' || store === 'redis' ? store : undefined,
    url: sound(redisShape.url, valueAt(written, ['url'])),
    username: sound(redisShape.username, valueAt(written, ['username'])),
    password: sound(redisShape.password, valueAt(written, ['password'])),
    sentinelUsername: sound(redisShape.sentinelUsername, valueAt(written, ['sentinelUsername'])),
    sentinelPassword: sound(redisShape.sentinelPassword, valueAt(written, ['sentinelPassword'])),
    tls: sound(redisShape.tls, valueAt(written, ['tls'])),
  };
}

/** @param written a mapping that may say more or less than an upstream does */
export function draftUpstream(written: unknown): DraftUpstream {
  return {
    reached: isReached(written) ? (['url', 'urls'] as const).filter((key) => Object.hasOwn(written, key)) : undefined,
    url: sound(upstreamShape.url, valueAt(written, ['url'])),
    urls: sound(upstreamShape.urls, valueAt(written, ['urls'])),
    outlierDetection: sound(upstreamShape.outlierDetection, valueAt(written, ['outlierDetection'])),
    tls: sound(upstreamShape.tls, valueAt(written, ['tls'])),
    http2: sound(upstreamShape.http2, valueAt(written, ['http2'])),
    timeout: sound(upstreamShape.timeout, valueAt(written, ['timeout'])),
    perTryTimeout: sound(upstreamShape.perTryTimeout, valueAt(written, ['perTryTimeout'])),
    rateLimit: sound(upstreamShape.rateLimit, valueAt(written, ['rateLimit'])),
    limits: sound(upstreamShape.limits, valueAt(written, ['limits'])),
    queue: sound(upstreamShape.queue, valueAt(written, ['queue'])),
    throttle: sound(upstreamShape.throttle, valueAt(written, ['throttle'])),
    idempotency: sound(upstreamShape.idempotency, valueAt(written, ['idempotency'])),
    retry: {
      retryOn: sound(retryShape.retryOn, valueAt(written, ['retry', 'retryOn'])),
      backOff: sound(retryShape.backOff, valueAt(written, ['retry', 'backOff'])),
      backOffFor: sound(retryShape.backOffFor, valueAt(written, ['retry', 'backOffFor'])),
      unkeyedWrites: sound(retryShape.unkeyedWrites, valueAt(written, ['retry', 'unkeyedWrites'])),
      replayLimit: sound(retryShape.replayLimit, valueAt(written, ['retry', 'replayLimit'])),
    },
  };
}

/** With a provider that nobody knows, it is not known either what its preset would have said. */
function isReached(written: unknown): written is object {
  const provider = valueAt(written, ['provider']);
  return isMapping(written) && (provider === undefined || isProvider(provider));
}

function draftRoute(written: unknown): DraftRoute {
  return {
    takes: sound(Takes, written),
    check: sound(Route.shape.check, valueAt(written, ['check'])),
    upstream: sound(Route.shape.upstream, valueAt(written, ['upstream'])),
    timeout: sound(Route.shape.timeout, valueAt(written, ['timeout'])),
    perTryTimeout: sound(Route.shape.perTryTimeout, valueAt(written, ['perTryTimeout'])),
    retry: sound(Route.shape.retry, valueAt(written, ['retry'])),
    cors: sound(Route.shape.cors, valueAt(written, ['cors'])),
    poll: sound(Route.shape.poll, valueAt(written, ['poll'])),
  };
}

/** Undefined where the value is not sound. */
export function sound<T extends z.ZodType>(schema: T, value: unknown): z.output<T> | undefined {
  const result = schema.safeParse(value);
  return result.success ? result.data : undefined;
}
