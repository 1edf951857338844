import type { Millis } from '../../core/scalars.ts';
import type { UsageReporter, SentRequest } from '../protocol/usage-reporter.ts';
import { AnswerEvents, RESPONDED, SENT } from './answer-events.ts';
import type { WeightAccount } from './active-weight.ts';

/** A replica's account at the backend: a few numbers, however much the replica sends. */
export class ReplicaAccount implements UsageReporter<string>, WeightAccount {
  readonly memberId: string;
  leasedTokens = 0;
  inFlight = 0;
  unanswered = 0;
  /** The epoch that it knows, and since when; each request states them. */
  epoch = 0;
  knownSince: Millis = Number.NEGATIVE_INFINITY;
  /** As in a flow of a fair queue: the service received, divided by the weight. */
  tag = 0;
  /** The weight that waited there when it was granted tokens last. */
  weight = 1;
  window = 0;
  weightInWindow = 0;
  weightBefore = 0;
  /** The same for the clients that wait or are to return. */
  readonly demand: WeightAccount = { window: 0, weightInWindow: 0, weightBefore: 0 };
  /** From this call's usage: when requests were sent, when requests ended, and when the answered ones had been sent. */
  readonly sentAt: Millis[] = [];
  readonly endedAt: Millis[] = [];
  readonly answeredSentAt: Millis[] = [];
  /** From this call's usage, in order. */
  readonly answers = new AnswerEvents();

  constructor(replicaId: string) {
    this.memberId = replicaId;
  }

  recordSend(_serial: number, { sentAt }: SentRequest): void {
    this.sentAt.push(sentAt);
  }

  recordEnd(at: Millis): void {
    this.endedAt.push(at);
  }

  recordUnanswered(change: number, at: Millis): void {
    this.answers.add(at, change > 0 ? SENT : RESPONDED);
  }

  recordLatency(latency: Millis, at: Millis): void {
    this.answers.add(at, Math.max(0, latency));
  }

  recordFailure(latency: Millis, at: Millis, isAbandoned = false): boolean {
    this.answers.addFailure(at, latency, isAbandoned);
    return true;
  }

  /** The number in flight at the send is learned later, once all replicas have reported: see `InFlightSamples`. */
  takeSend(_serial: number, sentAt: Millis): SentRequest {
    this.answeredSentAt.push(sentAt);
    return this.findSend(sentAt);
  }

  findSend(sentAt: Millis): SentRequest {
    const epoch = sentAt >= this.knownSince ? this.epoch : this.epoch - 1;
    return { sentAt, epoch, inFlightAtSend: 0, sendNumber: undefined };
  }

  /** The numbers that are stored between calls. */
  encode(): readonly number[] {
    return [
      this.leasedTokens,
      this.inFlight,
      this.tag,
      this.weight,
      this.window,
      this.weightInWindow,
      this.weightBefore,
      this.demand.window,
      this.demand.weightInWindow,
      this.demand.weightBefore,
      this.unanswered,
    ];
  }

  static decode(replicaId: string, numbers: readonly number[]): ReplicaAccount {
    const account = new ReplicaAccount(replicaId);
    account.leasedTokens = numbers[0] ?? 0;
    account.inFlight = numbers[1] ?? 0;
    account.tag = numbers[2] ?? 0;
    account.weight = numbers[3] ?? 1;
    account.window = numbers[4] ?? 0;
    account.weightInWindow = numbers[5] ?? 0;
    account.weightBefore = numbers[6] ?? 0;
    account.demand.window = numbers[7] ?? 0;
    account.demand.weightInWindow = numbers[8] ?? 0;
    account.demand.weightBefore = numbers[9] ?? 0;
    account.unanswered = numbers[10] ?? 0;
    return account;
  }
}
