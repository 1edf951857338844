import type { Bound } from './bound.ts';
import type { KeyedWrite } from './keyed-write.ts';
import type { KeyRecord } from './types.ts';

/** With them, 30 MB. */
const MOST_UNRESOLVED = 20_000;
const MOST_ANSWERED = 100_000;

/**
 * What is remembered of writes with idempotency keys. Unresolved ones are kept apart, so that answered ones never push them
 * out: such a write is safe to repeat while the upstream remembers its key, and may take effect a second time after that. What
 * is kept is forgotten to make room, not with time.
 */
export class KeyRecords {
  /** In the order in which they came. */
  readonly #unresolved = new Set<KeyedWrite>();
  /** A ring: the first entries of a `Set` from which the oldest is deleted again and again are slow to find. */
  readonly #answered: (KeyedWrite | undefined)[] = [];
  readonly #mostUnresolved: number;
  readonly #mostAnswered: number;
  readonly #onForgotten: (write: KeyedWrite) => void;
  #answeredCount = 0;
  #next = 0;
  #unresolvedForgotten = 0;
  #answeredForgotten = 0;

  /** @param onForgotten its record is gone */
  constructor(
    onForgotten: (write: KeyedWrite) => void,
    mostUnresolved = MOST_UNRESOLVED,
    mostAnswered = MOST_ANSWERED,
  ) {
    this.#onForgotten = onForgotten;
    this.#mostUnresolved = mostUnresolved;
    this.#mostAnswered = mostAnswered;
  }

  get bounds(): readonly Bound[] {
    return [
      {
        name: 'unsettled_keys',
        used: this.#unresolved.size / this.#mostUnresolved,
        reached: this.#unresolvedForgotten,
      },
      { name: 'settled_keys', used: this.#answeredCount / this.#mostAnswered, reached: this.#answeredForgotten },
    ];
  }

  /** What is known of it already is older, and stays; an answer resolves it. */
  keep(write: KeyedWrite, { firstSentAt, endpoint, isAnswered }: KeyRecord): void {
    if (write.state === 'answered' || (write.state === 'unresolved' && !isAnswered)) return;
    if (write.state === 'new') {
      // Another that is under way may have been sent before.
      write.firstSentAt = write.sent > 0 ? Math.min(write.firstSentAt, firstSentAt) : firstSentAt;
      write.endpoint = endpoint;
    }
    this.#unresolved.delete(write);
    write.state = isAnswered ? 'answered' : 'unresolved';
    if (isAnswered) this.#keepAnswered(write);
    else this.#keepUnresolved(write);
  }

  forget(write: KeyedWrite): void {
    if (write.place >= 0) {
      this.#answered[write.place] = undefined;
      this.#answeredCount -= 1;
      write.place = -1;
    }
    this.#unresolved.delete(write);
    write.state = 'new';
    this.#onForgotten(write);
  }

  #keepUnresolved(write: KeyedWrite): void {
    const [oldest] = this.#unresolved.size < this.#mostUnresolved ? [] : this.#unresolved;
    this.#unresolved.add(write);
    if (oldest === undefined) return;
    this.#unresolvedForgotten += 1;
    this.forget(oldest);
  }

  #keepAnswered(write: KeyedWrite): void {
    const oldest = this.#answered[this.#next];
    if (oldest !== undefined) {
      this.#answeredForgotten += 1;
      this.forget(oldest);
    }
    this.#answered[this.#next] = write;
    write.place = this.#next;
    this.#answeredCount += 1;
    this.#next = (this.#next + 1) % this.#mostAnswered;
  }
}
