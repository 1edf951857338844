import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Reporter, Sending } from '../protocol/authoritative-limit.ts';
import type { Counted } from './active-weight.ts';

/** What the pool knows of one who calls: a few numbers, however much it sends. */
export class PoolAccount implements Reporter<string>, Counted {
  readonly holder: string;
  lent = 0;
  inFlight = 0;
  /** The epoch that it knows of, and since when: who calls says so each time. */
  epoch = 0;
  knownSince: Millis = Number.NEGATIVE_INFINITY;
  /** As a flow's in a fair queue: how much it has had for its weight. */
  tag = 0;
  /** Of who waited there when it last had a token. */
  weight = 1;
  span = 0;
  counted = 0;
  before = 0;
  /** Of this call: when requests were sent, and ended; and when those were sent that were answered. */
  readonly sentAt: Millis[] = [];
  readonly endedAt: Millis[] = [];
  readonly answered: Millis[] = [];

  constructor(holder: string) {
    this.holder = holder;
  }

  noteSending(_serial: number, { sentAt }: Sending): void {
    this.sentAt.push(sentAt);
  }

  noteEnd(at: Millis): void {
    this.endedAt.push(at);
  }

  /** Among how many it was sent is found out when all have told what they sent then. */
  takeSending(_serial: number, sentAt: Millis): Sending {
    this.answered.push(sentAt);
    return this.findSending(sentAt);
  }

  findSending(sentAt: Millis): Sending {
    const epoch = sentAt >= this.knownSince ? this.epoch : this.epoch - 1;
    return { sentAt, epoch, among: 0, number: undefined };
  }

  /** All that is kept of it between calls. */
  write(): readonly number[] {
    return [this.lent, this.inFlight, this.tag, this.weight, this.span, this.counted, this.before];
  }

  static read(holder: string, numbers: readonly number[]): PoolAccount {
    const account = new PoolAccount(holder);
    account.lent = numbers[0] ?? 0;
    account.inFlight = numbers[1] ?? 0;
    account.tag = numbers[2] ?? 0;
    account.weight = numbers[3] ?? 1;
    account.span = numbers[4] ?? 0;
    account.counted = numbers[5] ?? 0;
    account.before = numbers[6] ?? 0;
    return account;
  }
}
