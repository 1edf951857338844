import type { RequestRecord } from '../core/events/request-record.ts';
import type { ExchangeObserver, ObservedExchange } from '../core/exchange/exchange-observer.ts';
import { isSafeMethod } from '../core/http-semantics/methods.ts';
import type { OpenWriteLog } from '../core/idempotency/open-writes.ts';
import type { Millis } from '../core/scalars.ts';

/** Keeps a log of the writes without a key that are being sent. */
export class OpenWriteObserver implements ExchangeObserver {
  readonly #log: OpenWriteLog;
  readonly #wallClock: () => Millis;
  readonly #open = new Set<string>();

  constructor(log: OpenWriteLog, wallClock: () => Millis) {
    this.#log = log;
    this.#wallClock = wallClock;
  }

  onSend(observed: ObservedExchange, attempt: number): void {
    if (attempt > 1) return;
    const { id: requestId, method, route, upstream, key } = observed.describe();
    if (key !== undefined || isSafeMethod(method)) return;
    this.#open.add(requestId);
    this.#log.onSent({ requestId, route, upstream, method, sentAt: this.#wallClock() });
  }

  onEnd(_observed: ObservedExchange, { id }: RequestRecord): void {
    if (this.#open.delete(id)) this.#log.onEnd(id);
  }

  onStart(): void {}
  onOutcome(): void {}
  onStep(): void {}
  onRefused(): void {}
}
