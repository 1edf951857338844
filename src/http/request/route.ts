import type { AsyncWritePolicy } from '../../core/delivery/async-write-policy.ts';
import type { DeliveryPolicy } from '../../core/delivery/delivery-policy.ts';
import type { RoutePolicy } from '../../core/exchange/steps.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ReplaySafety } from '../../core/exchange/request-facts.ts';
import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { CorsPolicy } from '../headers/cors-headers.ts';
import type { RouteCosts } from '../cost/route-costs.ts';
import type { IdempotencySettings } from '../idempotency/idempotency-types.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import type { ThrottleRules } from '../upstream/throttle-rules.ts';
import type { SignatureScheme } from '../webhooks/signature-types.ts';

/** Which requests a nested limit applies to, and how it is keyed. */
export interface NestedLimitRule {
  readonly name: string;
  readonly scope: LimitScope;
  /** One must match; undefined: any path. */
  readonly patterns: readonly PathPattern[] | undefined;
  /** None may match; undefined: there are none. */
  readonly exceptions?: readonly PathPattern[] | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly eachMethod: boolean;
  readonly eachPath: boolean;
  /** Positions of path segments that identify clients: their values are hashed. */
  readonly secretSegments: ReadonlySet<number>;
}

/** The accounts of an upstream, as far as the configuration of a request knows them. The gate has their credentials. */
export interface TargetAccounts {
  readonly names: readonly string[];
  /** Headers that only accounts send: in lower case, with `-` for `_`. */
  readonly headers: ReadonlySet<string>;
}

/** The fixed limits of a class of clients. */
export interface ClassLimitRefs {
  /** Of all its clients together. */
  readonly shared: LimitRef | undefined;
  /** The name of the limits of its single clients (`LimitRef.nested`). */
  readonly nestedOfClient: string | undefined;
}

/** An upstream, as the configuration compiles it. */
export interface UpstreamTarget {
  readonly name: string;
  readonly endpoints: Endpoints;
  /** HTTP/2 is offered. */
  readonly http2: boolean;
  /** Send the client's Host, not that of the endpoint. */
  readonly preserveHost: boolean;
  readonly scope: LimitScope;
  /** In lower case; the key of limits with scope `credential`. */
  readonly credentialHeader: string;
  /** Undefined if clients use their own credentials. */
  readonly accounts?: TargetAccounts | undefined;
  /** See `RateSettings`. */
  readonly learnsFromLatency: boolean;
  /** In the order in which they apply. */
  readonly nestedLimits: readonly NestedLimitRule[];
  /** By name of the client class. */
  readonly classLimits: ReadonlyMap<string, ClassLimitRefs>;
  /** Headers that identify the client, in lower case. A request with two of one name is rejected: servers differ in which they use. */
  readonly identityHeaders: ReadonlySet<string>;
  readonly idempotency: IdempotencySettings;
  /** How long a response body may pause. Server-sent events may pause without limit. */
  readonly streamIdle: Millis;
  /** The `throttle` rules; undefined if there are none. */
  readonly throttle: ThrottleRules | undefined;
}

/** Undefined: the method decides. @param path as sent to the upstream, without a query */
export type ClassifyReplaySafety = (method: string, path: string) => ReplaySafety | undefined;

export interface Route {
  /** The same route to the fallback of its upstream; undefined if it has none. */
  readonly fallback: Route | undefined;
  /** Its name in metrics and logs. */
  readonly name: string;
  readonly target: UpstreamTarget;
  readonly path: string;
  /** In lower case, without a port. Undefined: any. */
  readonly host: string | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly rewritePrefix: string | undefined;
  /** Its requests need no credential: there is no `clients.auth`, or it has `auth: none`. */
  readonly isPublic: boolean;
  /** Some clients may not use it, or may use no other route (`allow`). */
  readonly isRestricted: boolean;
  /** Undefined: CORS is left to the upstream. */
  readonly cors: CorsPolicy | undefined;
  /** Undefined: nothing is verified. Else a body beyond `replayLimit` is refused. */
  readonly verify: SignatureScheme | undefined;
  /** Undefined: each request costs one unit at each limit. */
  readonly costs?: RouteCosts | undefined;
  /** Whose equal reads are sent once, if its policy `coalesces`: those with the same credentials, or those of one client. */
  readonly coalescing?: 'credentials' | 'client';
  /** The requests of one client are sent with one account. */
  readonly stickyAccount?: boolean;
  readonly replayLimit: number;
  /** Undefined if no rules say so. */
  readonly replaySafetyOf: ClassifyReplaySafety | undefined;
  readonly policy: RoutePolicy;
  /** For client classes with a back-off of their own. */
  readonly policyByClass: ReadonlyMap<string, RoutePolicy>;
  /** Undefined: requests are forwarded while their client waits. */
  readonly delivery: DeliveryPolicy | undefined;
  /** Undefined: `Prefer: respond-async` is ignored. */
  readonly asyncWrites: AsyncWritePolicy | undefined;
}
