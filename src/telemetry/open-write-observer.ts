import type { RequestRecord } from '../core/events/request-record.ts';
import type { AttemptOutcome } from '../core/exchange/attempt-outcome.ts';
import type { ExchangeDescription, ExchangeObserver, ObservedExchange } from '../core/exchange/exchange-observer.ts';
import { isSafe } from '../core/exchange/request-facts.ts';
import type { OpenWriteLog } from '../core/idempotency/open-writes.ts';
import { classifyWrite } from '../core/idempotency/write-outcome.ts';
import type { Millis } from '../core/scalars.ts';

/** A write without a key, from its first send on. */
interface WatchedWrite {
  readonly description: ExchangeDescription;
  /** It is in the log. */
  isOpen: boolean;
  /** An attempt may have taken effect, so the outcomes of later ones leave it open. */
  mayHaveTakenEffect: boolean;
}

/**
 * Keeps a log of the writes without a key that are being sent, or may have taken effect. A write that waits for a retry is not in it
 * if none of its attempts did anything.
 */
export class OpenWriteObserver implements ExchangeObserver {
  readonly #log: OpenWriteLog;
  readonly #wallClock: () => Millis;
  readonly #watched = new WeakMap<ObservedExchange, WatchedWrite>();

  constructor(log: OpenWriteLog, wallClock: () => Millis) {
    this.#log = log;
    this.#wallClock = wallClock;
  }

  onSend(observed: ObservedExchange, attempt: number): void {
    const write = attempt > 1 ? this.#watched.get(observed) : this.#watch(observed);
    if (write === undefined || write.isOpen) return;
    write.isOpen = true;
    const { id: requestId, route, upstream, method } = write.description;
    this.#log.onSent({ requestId, route, upstream, method, sentAt: this.#wallClock() });
  }

  onOutcome(observed: ObservedExchange, _attempt: number, outcome: AttemptOutcome): void {
    const write = this.#watched.get(observed);
    if (write === undefined) return;
    write.mayHaveTakenEffect ||= mayHaveTakenEffect(write.description, outcome);
    if (!write.mayHaveTakenEffect) this.#close(write);
  }

  onEnd(observed: ObservedExchange, _record: RequestRecord): void {
    const write = this.#watched.get(observed);
    if (write !== undefined) this.#close(write);
  }

  onStart(): void {}
  onStep(): void {}
  onRefused(): void {}

  #watch(observed: ObservedExchange): WatchedWrite | undefined {
    const description = observed.describe();
    if (description.key !== undefined || isSafe(description)) return undefined;
    const write = { description, isOpen: false, mayHaveTakenEffect: false };
    this.#watched.set(observed, write);
    return write;
  }

  #close(write: WatchedWrite): void {
    if (write.isOpen) this.#log.onEnd(write.description.id);
    write.isOpen = false;
  }
}

/** Also true if it was answered: until its end, the client may not have the response. */
function mayHaveTakenEffect(
  { method, replaySafety, retryPolicy }: ExchangeDescription,
  outcome: AttemptOutcome,
): boolean {
  const meaning = classifyWrite({ keyed: false, method, replaySafety }, outcome, retryPolicy.notProcessed);
  return meaning === 'answered' || meaning === 'may_have_taken_effect';
}
