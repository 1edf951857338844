import type { Plan } from '../exchange.ts';
import type { Scope } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';
import type { Endpoints } from './endpoints.ts';
import type { Identify } from './identity.ts';
import type { Router } from './router.ts';

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
  /** In lower case: headers that say who asks. Of two of one name a server may believe either. */
  readonly identities: ReadonlySet<string>;
  /** In lower case; undefined where it recognises no key. */
  readonly idempotencyHeader: string | undefined;
  /** How long a response body may pause; server-sent events may pause for ever. */
  readonly streamIdle: Millis;
}

export interface Route {
  /** As metrics and logs call it. */
  readonly name: string;
  readonly target: Target;
  readonly path: string;
  /** In lower case, without a port. Undefined: any. */
  readonly host: string | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly rewritePrefix: string | undefined;
  readonly replayLimit: number;
  readonly plan: Plan;
  /** For clients of a class with a back-off of its own. */
  readonly planOfClass: ReadonlyMap<string, Plan>;
}

/** Everything the config says of requests, compiled. Immutable; a reload swaps the reference, an exchange keeps its own. */
export interface Snapshot {
  readonly router: Router;
  readonly identify: Identify;
  /** A path as logs may have it. */
  readonly tellPath: (path: string) => string;
  /** Whether this address is one of our proxies in front. */
  readonly trusts: (address: string) => boolean;
  readonly forwarded: boolean;
  readonly bodyIdle: Millis;
  /** Bytes a second; 0 for any. */
  readonly bodyRate: number;
}
