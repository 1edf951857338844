import type { Bound } from '../overload/resource-bound.ts';
import { NONE } from './credential-list.ts';
import { KeyClaims } from './key-claims.ts';
import { KeyRecords } from './key-records.ts';
import type { KeyedWrite, WriteIdentity } from './keyed-write.ts';
import { isOpen, isSameWrite } from './keyed-write.ts';
import type { KeyRecord, Millis } from '../exchange/attempt-outcome.ts';

/** Where it is not known how long keys live: after it, what comes with a key is taken for a new write. */
const ANY_LIFETIME: Millis = 24 * 60 * 60 * 1000;

/** Of one name; more of them are taken for the first, so that nobody makes the search long. */
const MOST_OF_A_NAME = 1000;

/** What this process knows of writes with idempotency keys: those under way, those unresolved, and those answered. */
export class KeyRegistry {
  readonly claims = new KeyClaims<KeyedWrite>();
  /** By their names, the last of each. */
  readonly #writes = new Map<string, KeyedWrite>();
  /** By upstream: writes that may have been done, and of which nobody knows it. */
  readonly #openAt = new Map<string, Set<KeyedWrite>>();
  readonly #records: KeyRecords;

  /** @param mostUnresolved that are remembered @param mostAnswered that are remembered */
  constructor(mostUnresolved?: number, mostAnswered?: number) {
    this.#records = new KeyRecords((write) => this.#changed(write), mostUnresolved, mostAnswered);
  }

  get bounds(): readonly Bound[] {
    return [this.claims.bound, ...this.#records.bounds];
  }

  /** Asked before anything is looked up for nothing. */
  get isAnythingOpen(): boolean {
    return this.#openAt.size > 0;
  }

  /** Whether the write of this name may have been done, here or by a request under way. Asked without taking part in it. */
  isOpen(name: string): boolean {
    return this.#find(name, isOpen) !== undefined;
  }

  /** Whether any write at this upstream is: for requests whose key cannot be known. */
  isAnyOpen(upstream: string): boolean {
    return this.#openAt.has(upstream);
  }

  /** Takes part in a write, as one of the requests that have it in hand. To be followed by `leave`. */
  enter(identity: WriteIdentity): KeyedWrite {
    const { name, credential } = identity;
    const write = this.#known(identity) ?? this.#lastOfMany(name) ?? this.#add(identity);
    // With the same credential, another body is the same write: whoever has joined it may come with one.
    if (write.credential !== credential) write.body = undefined;
    write.requests += 1;
    return write;
  }

  leave(write: KeyedWrite): void {
    write.requests -= 1;
    this.#changed(write);
  }

  /** One of its requests has been sent. To be followed by `over`. */
  sent(write: KeyedWrite, now: Millis, endpoint?: string): void {
    if (write.state === 'new' && write.sent === 0) {
      write.firstSentAt = now;
      write.endpoint = endpoint;
    }
    write.sent += 1;
    this.#changed(write);
  }

  over(write: KeyedWrite): void {
    write.sent -= 1;
    this.#changed(write);
  }

  /** What is remembered of it. @param ttl how long the upstream remembers its key; undefined where that is not known */
  recall(write: KeyedWrite, ttl: Millis | undefined, now: Millis): KeyRecord | undefined {
    if (write.state === 'new') return undefined;
    const { firstSentAt, endpoint, state } = write;
    if (ttl !== undefined || now <= firstSentAt + ANY_LIFETIME) {
      return { firstSentAt, endpoint, isAnswered: state === 'answered' };
    }
    this.#records.forget(write);
    return undefined;
  }

  /** @param credential of the request that leaves it so */
  keep(write: KeyedWrite, record: KeyRecord, credential: number = write.credential): void {
    this.#records.keep(write, record, credential);
    this.#changed(write);
  }

  /** One of its answers, to a request with this credential, did not reach its client as a whole. @param wasDone by that answer */
  unheard(write: KeyedWrite, wasDone: boolean, credential: number = write.credential): void {
    this.#records.unheard(write, wasDone, credential);
    this.#changed(write);
  }

  #changed(write: KeyedWrite): void {
    const { upstream } = write;
    const open = this.#openAt.get(upstream);
    if (isOpen(write)) {
      if (open === undefined) this.#openAt.set(upstream, new Set([write]));
      else open.add(write);
    } else if (open?.delete(write) === true && open.size === 0) this.#openAt.delete(upstream);
    if (write.requests === 0 && write.state === 'new') this.#drop(write);
  }

  #find(name: string, isMeant: (write: KeyedWrite) => boolean): KeyedWrite | undefined {
    for (let write = this.#writes.get(name); write !== undefined; write = write.next) if (isMeant(write)) return write;
    return undefined;
  }

  /** Where neither credential nor body tells, the write may be any of its name: the oldest that is open is the one to mind. */
  #known(identity: WriteIdentity): KeyedWrite | undefined {
    const { name, credential, body } = identity;
    const found =
      this.#find(name, (known) => known.credential === credential) ??
      this.#find(name, (known) => body !== undefined && known.body === body && isSameWrite(known, identity));
    if (found !== undefined) return found;
    let any: KeyedWrite | undefined;
    let oldestOpen: KeyedWrite | undefined;
    for (let known = this.#writes.get(name); known !== undefined; known = known.next) {
      if (!isSameWrite(known, identity)) continue;
      any ??= known;
      if (isOpen(known)) oldestOpen = known; // the last of them is the first that was made
    }
    return oldestOpen ?? any;
  }

  /** Where there are as many of a name as may be. */
  #lastOfMany(name: string): KeyedWrite | undefined {
    let count = 0;
    return this.#find(name, () => (count += 1) === MOST_OF_A_NAME);
  }

  #add(identity: WriteIdentity): KeyedWrite {
    const { upstream, name, credential, readFrom, body } = identity;
    const next = this.#writes.get(name);
    const state = 'new';
    const write: KeyedWrite = {
      ...{ upstream, name, credential, readFrom, body, next, state, firstSentAt: 0, endpoint: undefined },
      ...{ doneFor: NONE, openFor: NONE, place: -1, requests: 0, sent: 0 },
    };
    this.#writes.set(name, write);
    return write;
  }

  #drop(write: KeyedWrite): void {
    const first = this.#writes.get(write.name);
    const before = this.#find(write.name, ({ next }) => next === write);
    if (before !== undefined) before.next = write.next;
    else if (first === write && write.next !== undefined) this.#writes.set(write.name, write.next);
    else if (first === write) this.#writes.delete(write.name);
    write.next = undefined;
  }
}
