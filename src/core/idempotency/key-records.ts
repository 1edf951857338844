import type { Bound } from '../overload/resource-bound.ts';
import { countOf, excluding, excludingOne, includes, including, NONE } from './credential-list.ts';
import type { KeyedWrite } from './keyed-write.ts';
import type { KeyRecord } from '../exchange/attempt-outcome.ts';

/** With them, 30 MB. */
const MOST_UNRESOLVED = 20_000;
export const MOST_ANSWERED = 100_000;

/** Of one write. */
const MOST_OPEN_FOR = 8;

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
    else if (write.state !== 'answered' || write.doneFor === NONE) this.#open(write);
    else this.#openFor(write, credential);
  }

  /**
   * One of its answers did not reach its client as a whole. Where no other said what came of it for good, nobody knows; else only this
   * credential does not. That others were told of a decline says nothing of the attempts after that.
   * @param wasDone by that answer
   */
  unheard(write: KeyedWrite, wasDone: boolean, credential: number): void {
    if (write.state !== 'answered') return;
    if (wasDone) write.doneFor = excludingOne(write.doneFor, credential);
    if (write.doneFor === NONE) this.#open(write);
    else this.#openFor(write, credential);
  }

  forget(write: KeyedWrite): void {
    this.#remove(write);
    write.state = 'new';
    this.#onForgotten(write);
  }

  #answer(write: KeyedWrite, isDone: boolean, credential: number): void {
    if (isDone) write.doneFor = including(write.doneFor, credential);
    write.openFor = excluding(write.openFor, credential);
    if (write.state === 'answered') return;
    this.#remove(write);
    write.state = 'answered';
    this.#keepAnswered(write);
  }

  #open(write: KeyedWrite): void {
    if (write.state === 'unresolved') return;
    this.#remove(write);
    write.doneFor = NONE;
    write.openFor = NONE;
    write.state = 'unresolved';
    this.#keepUnresolved(write);
  }

  /** For this credential, unless it was told that it is done; for all, where there are many of them. */
  #openFor(write: KeyedWrite, credential: number): void {
    if (includes(write.doneFor, credential) || includes(write.openFor, credential)) return;
    if (countOf(write.openFor) < MOST_OPEN_FOR) write.openFor = including(write.openFor, credential);
    else this.#open(write);
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
