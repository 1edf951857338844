import type { ResourceBound } from '../overload/resource-bound.ts';
import {
  countCredentials,
  removeCredential,
  removeOneCredential,
  hasCredential,
  addCredential,
  NO_CREDENTIALS,
} from './credential-list.ts';
import type { StoredWrite } from './key-journal.ts';
import type { KeyedWrite } from './keyed-write.ts';
import type { KeyRecord } from './key-record.ts';

/** Unresolved and answered records together take 30 MB at most. */
export const MAX_ANSWERED = 100_000;
/** So many unresolved records are kept for each answered one. */
export const UNRESOLVED_SHARE = 1 / 5;
const MAX_UNRESOLVED = UNRESOLVED_SHARE * MAX_ANSWERED;

/** Beyond so many credentials, an answered write is unresolved for all. */
const MAX_UNRESOLVED_CREDENTIALS = 8;

/**
 * The records of writes with idempotency keys. Unresolved ones are kept apart, so that answered ones never evict them: such
 * a write is safe to repeat while the upstream remembers its key, and may take effect a second time after that. This class
 * forgets records only to make room; `KeyRegistry.recall` forgets old ones if their lifetime is not known.
 */
export class KeyRecords {
  /** The unresolved writes in order of arrival. */
  readonly #unresolved = new Set<KeyedWrite>();
  /** The same, by the credential of the first request. */
  readonly #unresolvedBy = new Map<number, Set<KeyedWrite>>();
  /** A ring rather than a `Set`: after many deletions of its oldest entry, a `Set` finds its first entry slowly. */
  readonly #answered: (KeyedWrite | undefined)[] = [];
  readonly #maxUnresolved: number;
  readonly #maxAnswered: number;
  readonly #onForgotten: (write: KeyedWrite) => void;
  #answeredCount = 0;
  #nextIndex = 0;
  #unresolvedForgotten = 0;
  #answeredForgotten = 0;

  /** @param onForgotten called when the record of a write is gone */
  constructor(onForgotten: (write: KeyedWrite) => void, maxUnresolved = MAX_UNRESOLVED, maxAnswered = MAX_ANSWERED) {
    this.#onForgotten = onForgotten;
    this.#maxUnresolved = maxUnresolved;
    this.#maxAnswered = maxAnswered;
  }

  get bounds(): readonly ResourceBound[] {
    return [
      {
        name: 'unsettled_keys',
        used: this.#unresolved.size / this.#maxUnresolved,
        reached: this.#unresolvedForgotten,
      },
      { name: 'settled_keys', used: this.#answeredCount / this.#maxAnswered, reached: this.#answeredForgotten },
    ];
  }

  /**
   * Updates a record. When a known write was first sent does not change. A response to the write resolves it.
   * An attempt without one makes it unresolved again: for every credential if no response was final, otherwise only for
   * its own, and not for a credential that has the final response.
   */
  record(write: KeyedWrite, { firstSentAt, isAnswered, isFinal = false }: KeyRecord, credential: number): void {
    if (write.state === 'new') {
      // Another request in progress may have been sent before.
      write.firstSentAt = write.sentCount > 0 ? Math.min(write.firstSentAt, firstSentAt) : firstSentAt;
    }
    if (isAnswered) this.#markAnswered(write, isFinal, credential);
    else if (write.state !== 'answered' || write.finalFor === NO_CREDENTIALS) this.#markUnresolved(write);
    else this.#markUnresolvedFor(write, credential);
  }

  /**
   * A response to the write was not delivered in full. If no other client got a final response, the write is unresolved
   * for all; otherwise only for this credential. A decline that others received says nothing about later attempts.
   * @param wasFinal whether that response was final
   */
  onUndelivered(write: KeyedWrite, wasFinal: boolean, credential: number): void {
    if (write.state !== 'answered') return;
    if (wasFinal) write.finalFor = removeOneCredential(write.finalFor, credential);
    if (write.finalFor === NO_CREDENTIALS) this.#markUnresolved(write);
    else this.#markUnresolvedFor(write, credential);
  }

  /** Adds the record of an earlier process. */
  restore(write: KeyedWrite, { state, finalFor, unresolvedFor }: StoredWrite): void {
    if (state === 'unresolved') return this.#markUnresolved(write);
    write.state = 'answered';
    write.finalFor = finalFor;
    write.unresolvedFor = unresolvedFor;
    this.#addAnswered(write);
  }

  forget(write: KeyedWrite): void {
    this.#remove(write);
    write.state = 'new';
    // A request that is using it makes another write of it.
    write.finalFor = NO_CREDENTIALS;
    write.unresolvedFor = NO_CREDENTIALS;
    write.wasDelivered = false;
    this.#onForgotten(write);
  }

  #markAnswered(write: KeyedWrite, isFinal: boolean, credential: number): void {
    if (isFinal) write.finalFor = addCredential(write.finalFor, credential);
    write.unresolvedFor = removeCredential(write.unresolvedFor, credential);
    if (write.state === 'answered') return;
    this.#remove(write);
    write.state = 'answered';
    this.#addAnswered(write);
  }

  #markUnresolved(write: KeyedWrite): void {
    if (write.state === 'unresolved') return;
    this.#remove(write);
    write.finalFor = NO_CREDENTIALS;
    write.unresolvedFor = NO_CREDENTIALS;
    write.state = 'unresolved';
    this.#addUnresolved(write);
  }

  /** For this credential, unless it received a final response; for all, if there are many of them. */
  #markUnresolvedFor(write: KeyedWrite, credential: number): void {
    if (hasCredential(write.finalFor, credential) || hasCredential(write.unresolvedFor, credential)) return;
    if (countCredentials(write.unresolvedFor) < MAX_UNRESOLVED_CREDENTIALS) {
      write.unresolvedFor = addCredential(write.unresolvedFor, credential);
    } else this.#markUnresolved(write);
  }

  #remove(write: KeyedWrite): void {
    if (write.ringIndex >= 0) {
      this.#answered[write.ringIndex] = undefined;
      this.#answeredCount -= 1;
      write.ringIndex = -1;
    }
    if (!this.#unresolved.delete(write)) return;
    const own = this.#unresolvedBy.get(write.owner);
    own?.delete(write);
    if (own?.size === 0) this.#unresolvedBy.delete(write.owner);
  }

  /** An owner with more than its share of unresolved writes evicts its own. */
  #addUnresolved(write: KeyedWrite): void {
    const { owner } = write;
    const own = this.#unresolvedBy.get(owner) ?? new Set();
    const isOver = own.size > this.#maxUnresolved / Math.max(1, this.#unresolvedBy.size);
    const [oldest] = this.#unresolved.size < this.#maxUnresolved ? [] : isOver ? own : this.#unresolved;
    this.#unresolvedBy.set(owner, own.add(write));
    this.#unresolved.add(write);
    if (oldest === undefined) return;
    this.#unresolvedForgotten += 1;
    this.forget(oldest);
  }

  #addAnswered(write: KeyedWrite): void {
    const oldest = this.#answered[this.#nextIndex];
    if (oldest !== undefined) {
      this.#answeredForgotten += 1;
      this.forget(oldest);
    }
    this.#answered[this.#nextIndex] = write;
    write.ringIndex = this.#nextIndex;
    this.#answeredCount += 1;
    this.#nextIndex = (this.#nextIndex + 1) % this.#maxAnswered;
  }
}
