import type { Bound } from './bound.ts';
import type { KeyedWrite } from './keyed-write.ts';
import type { KeyRecord } from './types.ts';

/** With them, 30 MB. */
const MOST_UNRESOLVED = 20_000;
const MOST_ANSWERED = 100_000;

/**
 * What is remembered of writes with idempotency keys. Unresolved ones are kept apart, so that answered ones never push them
 * out: such a write is safe to repeat while the upstream remembers its key, and may take effect a second time after that. Here
 * records are forgotten only to make room; `KeyRegistry.recall` forgets old ones where no lifetime is known.
 */
export class KeyRecords {
  /** In the order in which they came. */
  readonly #unresolved = new Set<KeyedWrite>();
  /** The same, by the credential of whoever sent it first. */
  readonly #unresolvedBy = new Map<number, Set<KeyedWrite>>();
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

  /**
   * When and where a known write was first sent does not change. An answer resolves it. An attempt without one opens it again:
   * for every credential where no answer was final, else only for its own, and not at all for the one that has the final answer.
   */
  keep(write: KeyedWrite, { firstSentAt, endpoint, isAnswered, isDone = false }: KeyRecord, credential: number): void {
    if (write.state === 'new') {
      // Another that is under way may have been sent before.
      write.firstSentAt = write.sent > 0 ? Math.min(write.firstSentAt, firstSentAt) : firstSentAt;
      write.endpoint = endpoint;
    }
    if (isAnswered) this.#answer(write, isDone, credential);
    else if (write.state !== 'answered' || write.doneFor === 0) this.#open(write);
    else if (write.doneFor !== credential) write.openFor = credential;
  }

  /** One of its answers did not reach its client as a whole: where no other did, nobody knows what came of it. */
  unheard(write: KeyedWrite): void {
    if (write.state !== 'answered') return;
    write.answers -= 1;
    if (write.answers <= 0) this.#open(write);
  }

  forget(write: KeyedWrite): void {
    this.#remove(write);
    write.state = 'new';
    this.#onForgotten(write);
  }

  #answer(write: KeyedWrite, isDone: boolean, credential: number): void {
    write.answers += 1;
    if (isDone) write.doneFor = credential;
    if (write.openFor === credential) write.openFor = 0;
    if (write.state === 'answered') return;
    this.#remove(write);
    write.state = 'answered';
    this.#keepAnswered(write);
  }

  #open(write: KeyedWrite): void {
    if (write.state === 'unresolved') return;
    this.#remove(write);
    write.answers = 0;
    write.doneFor = 0;
    write.openFor = 0;
    write.state = 'unresolved';
    this.#keepUnresolved(write);
  }

  #remove(write: KeyedWrite): void {
    if (write.place >= 0) {
      this.#answered[write.place] = undefined;
      this.#answeredCount -= 1;
      write.place = -1;
    }
    if (!this.#unresolved.delete(write)) return;
    const own = this.#unresolvedBy.get(write.credential);
    own?.delete(write);
    if (own?.size === 0) this.#unresolvedBy.delete(write.credential);
  }

  /** Who leaves more than its share unresolved pushes out its own. */
  #keepUnresolved(write: KeyedWrite): void {
    const { credential } = write;
    const own = this.#unresolvedBy.get(credential) ?? new Set();
    const isOver = own.size > this.#mostUnresolved / Math.max(1, this.#unresolvedBy.size);
    const [oldest] = this.#unresolved.size < this.#mostUnresolved ? [] : isOver ? own : this.#unresolved;
    this.#unresolvedBy.set(credential, own.add(write));
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
