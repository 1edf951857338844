import type { Scope } from './events.ts';

/** Which limit: an upstream's own, or that of one client or credential at it. */
export interface LimitRef {
  readonly upstream: string;
  readonly scope: Scope;
  /** Empty for scope upstream; else a hash. */
  readonly key: string;
}
