import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';
import { SendAccount } from './send-history.ts';

/** One account in two measures: finely over the last second, and by whole seconds over the last two minutes. */
export class SendAccounts {
  readonly recent = new SendAccount(50, 24);
  readonly long = new SendAccount(1000, 128);

  sent(now: Millis): void {
    this.recent.sent(now);
    this.long.sent(now);
  }

  rejected(sentAt: Millis): void {
    this.recent.rejected(sentAt);
    this.long.rejected(sentAt);
  }

  /** As if that many a second had been accepted for the last second. */
  preload(now: Millis, accepted: PerSecond): void {
    this.recent.preload(now, accepted);
    this.long.preload(now, accepted);
  }
}
