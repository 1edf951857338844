import type { Millis, PerSecond } from '../scalars.ts';
import { SendHistory } from './send-history.ts';

/** The send history in two resolutions: 50 ms over the last second, and 1 s over the last two minutes. */
export class SendHistories {
  readonly recent = new SendHistory(50, 24);
  readonly long = new SendHistory(1000, 128);

  onSent(now: Millis): void {
    this.recent.onSent(now);
    this.long.onSent(now);
  }

  onRejected(sentAt: Millis): void {
    this.recent.onRejected(sentAt);
    this.long.onRejected(sentAt);
  }

  /** Adds accepted requests at this rate for the last second. */
  preload(now: Millis, accepted: PerSecond): void {
    this.recent.preload(now, accepted);
    this.long.preload(now, accepted);
  }
}
