import type { Plan } from '../../core/exchange/steps.ts';
import type { Scope } from '../../core/events/proxy-events.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Millis, Nature } from '../../core/exchange/attempt-outcome.ts';
import type { CheckRouter } from '../ext-authz/check-router.ts';
import type { CorsPolicy } from '../headers/cors-headers.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import type { Idempotency } from '../idempotency/idempotency-key.ts';
import type { Identify } from './client-identity.ts';
import type { NestedRule } from './match-limits.ts';
import type { Router } from './router.ts';
import type { Throttle } from '../upstream/throttle-rules.ts';

/** What an upstream is to the proxy. */
export interface Target {
  readonly name: string;
  readonly endpoints: Endpoints;
  /** HTTP/2 may be spoken to them. */
  readonly http2: boolean;
  /** Send the client's Host, not that of the endpoint. */
  readonly preserveHost: boolean;
  readonly scope: Scope;
  /** In lower case; tells credentials apart under scope `credential`. */
  readonly credentialHeader: string;
  /** Limits of some of its requests, in the order in which these stand under them. */
  readonly nested: readonly NestedRule[];
  /** Limits of classes of clients here, by the name of the class. */
  readonly classLimits: ReadonlyMap<string, LimitRef>;
  /** In lower case: headers that say who asks. Of two of one name a server may believe either. */
  readonly identities: ReadonlySet<string>;
  readonly idempotency: Idempotency;
  /** How long a response body may pause; server-sent events may pause for ever. */
  readonly streamIdle: Millis;
  /** How it says no; undefined where there is nothing but what is read of every answer. */
  readonly throttle: Throttle | undefined;
}

/** What a request is by its method and its path, as the upstream sees it, without a query. */
export type TellNature = (method: string, path: string) => Nature | undefined;

export interface Route {
  /** As metrics and logs call it. */
  readonly name: string;
  readonly target: Target;
  readonly path: string;
  /** In lower case, without a port. Undefined: any. */
  readonly host: string | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly rewritePrefix: string | undefined;
  /** Who may ask from a browser; undefined where that is left to the upstream. */
  readonly cors: CorsPolicy | undefined;
  readonly replayLimit: number;
  /** Undefined where no path is known to be of another nature than its method. */
  readonly tellNature: TellNature | undefined;
  readonly plan: Plan;
  /** For clients of a class with a back-off of its own. */
  readonly planOfClass: ReadonlyMap<string, Plan>;
}

/** Where is asked whether a request may pass, and what came of it is reported. */
export interface CheckPoint {
  readonly path: string;
  readonly reportPath: string;
  /** SHA-256 of what who reports has to show; undefined: nothing can be reported. */
  readonly token: Buffer | undefined;
  /** To those routes that answer checks. */
  readonly router: CheckRouter;
  /** Whether what no route leads to may pass. */
  readonly passesUnrouted: boolean;
  /** By name. */
  readonly targets: ReadonlyMap<string, Target>;
}

/** Everything the config says of requests, compiled. Immutable; a reload swaps the reference, an exchange keeps its own. */
export interface Snapshot {
  readonly router: Router;
  /** Undefined where nothing is asked. */
  readonly check: CheckPoint | undefined;
  readonly identify: Identify;
  /** A path as logs may have it. */
  readonly tellPath: (path: string) => string;
  /** Whether this address is one of our proxies in front. */
  readonly trusts: (address: string) => boolean;
  readonly forwarded: boolean;
  readonly bodyIdle: Millis;
  /** Bytes a second; 0 for any. */
  readonly bodyRate: number;
  /** The same, of reading answers. */
  readonly readRate: number;
}
