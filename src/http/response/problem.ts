import type { Millis } from '../../core/scalars.ts';

/**
 * `quota-exceeded`: the requests exceed what the client may send at present. `temporary-reduced-capacity`: the request cannot be
 * served at present, whatever its client has sent. `abnormal-usage-detected` is not used: no rule of Tidegate judges a client.
 */
export type RateLimitProblemType = 'quota-exceeded' | 'temporary-reduced-capacity';

/** A response of the proxy itself (RFC 9457). Proxy-Status (RFC 9209) distinguishes it from the upstream's responses. */
export interface Problem {
  readonly status: number;
  readonly title: string;
  /** What happened and what to do, for the developer of the client. The same text each time: clients group errors by it. */
  readonly detail: string;
  /** One stable word for programs: a refusal, an error reason, or a fault of the request. */
  readonly reason: string;
  /** A type of draft-ietf-httpapi-ratelimit-headers-10 §5; absent: one of Tidegate's own, named by `reason`. */
  readonly type?: RateLimitProblemType | undefined;
  /** An error type of RFC 9209 §2.3. */
  readonly proxyError: string;
  readonly retryAfterMs: Millis | undefined;
  /** A write that may have taken effect. */
  readonly unknown: boolean;
  /** The value of WWW-Authenticate, with a 401. */
  readonly challenge?: string;
  /** For the log only: the client does not get it. */
  readonly cause?: string;
}
