import type { Millis, PerSecond } from '../../scalars.ts';
import type { CalendarQuotaSettings, Instant, QuotaView } from './calendar-quota.ts';

/**
 * One quota at an upstream, as the gate uses it. A request reserves its part when it is admitted, and counts when it is sent. This
 * process counts it alone (`CalendarQuota`), or leases parts of what another process or a store counts.
 */
export interface UpstreamQuota {
  readonly settings: CalendarQuotaSettings;
  /** More parts are requested: requests may be sent soon, although `delay` is Infinity. */
  readonly isAwaited: boolean;
  /**
   * The counts are not available: a store or a process that has them does not respond. Or they are not complete: after the reset, other
   * processes may still send what they held.
   */
  readonly isLost: boolean;
  /** @param settings with the same name and period: what was counted stays */
  reconfigure(settings: CalendarQuotaSettings): void;
  /** Time until a request may be sent by the count alone; 0 if one may be now, and while that is not known. */
  untilReset(hasPriority: boolean, instant: Instant): Millis;
  /** As `untilReset`, for a refused client: what is only reserved may be released again, and the reset may be a month away. */
  returnDelay(hasPriority: boolean, instant: Instant): Millis;
  /** Time until a request may be sent, by the count and by an even pace; 0 if one may be now, Infinity while a part is requested. */
  delay(hasPriority: boolean, instant: Instant): Millis;
  /** As `delay`, for an estimate: a part that is requested comes soon. */
  expectedDelay(hasPriority: boolean, instant: Instant): Millis;
  /** The rate that an even pace allows this process; Infinity without one, and while the quota is used up. */
  rate(hasPriority: boolean, instant: Instant): PerSecond;
  /** A request was admitted. @param due when its turn was, on the gate's clock, if a timer fired late */
  reserve(hasPriority: boolean, due: Millis, instant: Instant): void;
  /** A reservation ends: its request is being sent, or never will be. */
  release(): void;
  /** A request is being sent: it counts from now on. */
  onSent(instant: Instant): void;
  /** Nothing of a request was sent after all. @param sent when it was counted */
  giveBack(sent: Instant): void;
  /** Undefined if another process shows it, or before anything is known of it. */
  view(instant: Instant): QuotaView | undefined;
  /** The configuration no longer has this quota. */
  close(): void;
}
