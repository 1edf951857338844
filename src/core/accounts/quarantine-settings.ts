import type { Millis } from '../scalars.ts';

/** What excludes an account from service, and for how long. */
export interface QuarantineSettings {
  /** Statuses that say that the upstream does not accept the credential. */
  readonly statuses: ReadonlySet<number>;
  /** Number of such responses in a row, to one client or to several unrelated ones, ≥ 1. */
  readonly after: number;
  /** Time to the first probe; it doubles after each failed probe, up to `maxInterval`. */
  readonly interval: Millis;
  readonly maxInterval: Millis;
}
