import type { Millis, PerSecond } from '../scalars.ts';
import { SendHistory } from './send-history.ts';

/** The send history in two resolutions: 50 ms over the last second, and 1 s over the last two minutes. */
export class SendHistories {
  readonly recent = new SendHistory(50, 24);
  readonly long = new SendHistory(1000, 128);

  onSent(now: Millis, cost = 1): void {
    this.recent.onSent(now, cost);
    this.long.onSent(now, cost);
  }

  onSettled(sentAt: Millis, difference: number): void {
    this.recent.onSettled(sentAt, difference);
    this.long.onSettled(sentAt, difference);
  }

  onRejected(sentAt: Millis, cost = 1): void {
    this.recent.onRejected(sentAt, cost);
    this.long.onRejected(sentAt, cost);
  }

  /** Adds accepted requests at this rate for the last second. */
  preload(now: Millis, accepted: PerSecond): void {
    this.recent.preload(now, accepted);
    this.long.preload(now, accepted);
  }
}
