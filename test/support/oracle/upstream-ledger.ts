import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { failure, response } from '../core/policy-builders.ts';

/** The outcome that the proxy sees of an attempt, and its delay. */
export interface LedgerAttempt {
  readonly outcome: AttemptOutcome;
  readonly after: Millis;
}

interface Entry {
  readonly since: Millis;
  readonly doneAt: Millis;
  readonly status: number;
}

/** The network latency of every request. */
const ON_THE_WAY: Millis = 2;

/** Rejections by an intermediary, as by a firewall or a router or for an expired token. */
export const EDGE = [301, 303, 307, 400, 401, 403, 404, 405, 407, 408, 410, 413, 415, 421, 422, 425, 431, 451];

/**
 * An upstream that recognises keys until they expire, behind an edge with random faults. Its ledger counts how often each
 * intent was carried out.
 */
export class UpstreamLedger {
  readonly #times = new Map<string, number>();
  readonly #firstSentAt = new Map<string, Millis>();
  readonly #statuses = new Map<string, number>();
  readonly #keys = new Map<string, Entry>();
  readonly #ttl: Millis;
  readonly #random: Random;

  constructor(ttl: Millis, random: Random) {
    this.#ttl = ttl;
    this.#random = random;
  }

  /** Returns how often the intent was carried out. */
  times(intent: string): number {
    return this.#times.get(intent) ?? 0;
  }

  /** When an attempt was first sent that has carried out the intent. */
  firstSentAt(intent: string): Millis {
    return this.#firstSentAt.get(intent) ?? Number.POSITIVE_INFINITY;
  }

  /** @param key undefined if there is none @param isRepeatable true for an idempotent method */
  attempt(intent: string, key: string | undefined, isRepeatable: boolean, timeout: Millis, now: Millis): LedgerAttempt {
    const random = this.#random;
    const fault = random();
    const latency = 5 + 40 * random();
    if (fault < 0.03) return { outcome: failure('connect', false), after: 1 };
    if (fault < 0.12) return { outcome: response(pick(EDGE, random)), after: 2 };
    if (fault < 0.14) return { outcome: throttled(random), after: 2 };
    if (fault < 0.17) return { outcome: response(pick([501, 503, 505, 529], random)), after: 2 };
    if (fault < 0.19) return { outcome: failure('reset', true), after: 3 }; // before it was read
    if (fault < 0.21) return { outcome: response(pick([502, 504], random)), after: 3 };
    const answer = this.#process(intent, key, isRepeatable, now + ON_THE_WAY, now + latency);
    if (fault < 0.3) return { outcome: failure('reset', true), after: latency };
    if (fault < 0.35) return { outcome: response(pick([500, 502, 504, 520, 524], random)), after: latency };
    if (fault < 0.4) return { outcome: failure('timeout', true), after: timeout };
    return latency < timeout
      ? { outcome: answer, after: latency }
      : { outcome: failure('timeout', true), after: timeout };
  }

  /** @param at when it arrives @param end when it is answered */
  #process(intent: string, key: string | undefined, isRepeatable: boolean, at: Millis, end: Millis): AttemptOutcome {
    const known = key === undefined ? undefined : this.#keys.get(key);
    if (known !== undefined && at < known.since + this.#ttl) {
      if (end < known.doneAt) return response(409);
      return { ...response(known.status), isReplayed: true } as AttemptOutcome;
    }
    // A payment by PUT that was made before may be declined, because it has used up the funds.
    if (isRepeatable && this.times(intent) > 0 && this.#random() < 0.3) return response(402);
    const status = this.#statusOf(intent);
    const doneAt = end + (this.#random() < 0.2 ? 100 * this.#random() : 0);
    if (key !== undefined) this.#keys.set(key, { since: at, doneAt, status });
    if (status === 201 && !(isRepeatable && this.times(intent) > 0)) {
      this.#times.set(intent, this.times(intent) + 1);
      if (this.times(intent) === 1) this.#firstSentAt.set(intent, at - ON_THE_WAY);
    }
    return response(status);
  }

  /** The same for every attempt: a declined card stays declined. */
  #statusOf(intent: string): number {
    const known = this.#statuses.get(intent);
    if (known !== undefined) return known;
    const status = this.#random() < 0.2 ? 402 : 201;
    this.#statuses.set(intent, status);
    return status;
  }
}

function throttled(random: Random): AttemptOutcome {
  return response(429, random() < 0.5 ? {} : { retryAfterMs: 50 + 200 * random() });
}

function pick<T>(values: readonly T[], random: Random): T {
  const value = values[Math.floor(values.length * random())];
  if (value === undefined) throw new RangeError('nothing to choose from');
  return value;
}
