import type { Bound } from './bound.ts';
import { KeyClaims } from './key-claims.ts';
import { KeyRecords } from './key-records.ts';
import type { KeyedWrite, WriteIdentity } from './keyed-write.ts';
import { isSameWrite } from './keyed-write.ts';
import type { KeyRecord, Millis } from './types.ts';

/** Where it is not known how long keys live: after it, what comes with a key is taken for a new write. */
const ANY_LIFETIME: Millis = 24 * 60 * 60 * 1000;

/** Of one name; more of them are taken for the first, so that nobody makes the search long. */
const MOST_OF_A_NAME = 16;

/** What this process knows of writes with idempotency keys: those under way, those unresolved, and those answered. */
export class KeyRegistry {
  readonly claims = new KeyClaims<KeyedWrite>();
  /** By their names; mostly one. */
  readonly #writes = new Map<string, readonly KeyedWrite[]>();
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
    return this.#writes.get(name)?.some(isOpen) === true;
  }

  /** Whether any write at this upstream is: for requests whose key cannot be known. */
  isAnyOpen(upstream: string): boolean {
    return this.#openAt.has(upstream);
  }

  /** Takes part in a write, as one of the requests that have it in hand. To be followed by `leave`. */
  enter(identity: WriteIdentity): KeyedWrite {
    const { name, credential, isAuthenticated } = identity;
    const writes = this.#writes.get(name) ?? [];
    const found =
      writes.find((write) => write.credential === credential && write.isAuthenticated === isAuthenticated) ??
      writes.find((write) => isSameWrite(write, identity)) ??
      (writes.length < MOST_OF_A_NAME ? undefined : writes[0]);
    const write = found ?? { ...identity, record: undefined, place: -1, requests: 0, sent: 0 };
    if (found === undefined) this.#writes.set(name, [...writes, write]);
    write.requests += 1;
    return write;
  }

  leave(write: KeyedWrite): void {
    write.requests -= 1;
    this.#changed(write);
  }

  /** One of its requests has been sent. To be followed by `over`. */
  sent(write: KeyedWrite): void {
    write.sent += 1;
    this.#changed(write);
  }

  over(write: KeyedWrite): void {
    write.sent -= 1;
    this.#changed(write);
  }

  /** What is remembered of it. @param ttl how long the upstream remembers its key; undefined where that is not known */
  recall(write: KeyedWrite, ttl: Millis | undefined, now: Millis): KeyRecord | undefined {
    const { record } = write;
    if (record === undefined || ttl !== undefined || now <= record.firstSentAt + ANY_LIFETIME) return record;
    this.#records.forget(write);
    return undefined;
  }

  keep(write: KeyedWrite, record: KeyRecord): void {
    this.#records.keep(write, record);
    this.#changed(write);
  }

  forget(write: KeyedWrite): void {
    this.#records.forget(write);
  }

  #changed(write: KeyedWrite): void {
    const { upstream } = write;
    const open = this.#openAt.get(upstream);
    if (isOpen(write)) {
      if (open === undefined) this.#openAt.set(upstream, new Set([write]));
      else open.add(write);
    } else if (open?.delete(write) === true && open.size === 0) this.#openAt.delete(upstream);
    if (write.requests === 0 && write.record === undefined) this.#drop(write);
  }

  #drop(write: KeyedWrite): void {
    const others = this.#writes.get(write.name)?.filter((each) => each !== write) ?? [];
    if (others.length === 0) this.#writes.delete(write.name);
    else this.#writes.set(write.name, others);
  }
}

/** It may have been done, and nobody knows. */
export function isOpen({ sent, record }: KeyedWrite): boolean {
  return sent > 0 || record?.isAnswered === false;
}
