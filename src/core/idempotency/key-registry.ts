import type { ResourceBound } from '../overload/resource-bound.ts';
import { addCredential, NO_CREDENTIALS, removeOneCredential } from './credential-list.ts';
import type { KeyJournal, StoredWrite } from './key-journal.ts';
import { KeyClaims } from './key-claims.ts';
import { KeyRecords } from './key-records.ts';
import type { KeyedWrite, OwnerDigests, WriteIdentity } from './keyed-write.ts';
import { haveOtherOwners, identityOf, isAmbiguous, isForgettable, isSameWrite, isUnresolved } from './keyed-write.ts';
import type { KeyRecord } from './key-record.ts';
import type { Millis } from '../scalars.ts';

/** If the lifetime of keys is not known: after this, a request with a key counts as a new write. */
export const DEFAULT_KEY_LIFETIME: Millis = 24 * 60 * 60 * 1000;

/** Writes of one name. Beyond it, a request joins the oldest, or is refused, so that no client can make the search long. */
const MAX_PER_NAME = 1000;

/** The writes with idempotency keys that this process knows: in progress, unresolved and answered. */
export class KeyRegistry {
  readonly claims = new KeyClaims<KeyedWrite>();
  /** By name, the newest of each; the others follow by `next`. */
  readonly #writes = new Map<string, KeyedWrite>();
  /** Unresolved writes, by upstream. */
  readonly #unresolvedAt = new Map<string, Set<KeyedWrite>>();
  readonly #records: KeyRecords;
  #journal: KeyJournal | undefined;

  constructor(maxUnresolved?: number, maxAnswered?: number) {
    this.#records = new KeyRecords((write) => this.#reindex(write), maxUnresolved, maxAnswered);
  }

  /** Restores what an earlier process knew, and stores each change from now on. @param stored with its id, the oldest first */
  resume(stored: Iterable<readonly [id: number, write: StoredWrite]>, journal: KeyJournal): void {
    const restored: KeyedWrite[] = [];
    for (const [id, known] of stored) {
      const write = this.restore(known);
      write.journalId = id;
      write.journaledAs = known.state;
      write.wasDelivered = known.state === 'answered';
      this.leave(write);
      restored.push(write);
    }
    this.#journal = journal;
    journal.onSurplus(restored.filter(({ state }) => state === 'new')); // there was no room for them
  }

  /** Adds a write that is known elsewhere, and joins it. To be followed by `leave`. @param write if it is here, but not remembered */
  restore(known: Omit<StoredWrite, 'state'> & Pick<KeyedWrite, 'state'>, write = this.#add(known)): KeyedWrite {
    write.firstSentAt = known.firstSentAt;
    write.endpoint = known.endpoint;
    write.requestCount += 1;
    if (known.state !== 'new') this.#records.restore(write, { ...known, state: known.state });
    return write;
  }

  /** Whether any write of this name is known, or in progress. */
  knows(name: string): boolean {
    return this.#writes.has(name);
  }

  /** The writes of one name, the newest first. */
  *writesOf(name: string): Generator<KeyedWrite> {
    for (let write = this.#writes.get(name); write !== undefined; write = write.next) yield write;
  }

  /** Undefined if keys do not outlive this process. */
  get journal(): KeyJournal | undefined {
    return this.#journal;
  }

  get bounds(): readonly ResourceBound[] {
    return [this.claims.bound, ...this.#records.bounds];
  }

  /** The newest write of each name; the others follow by `next`. Writes may come and go while it is read. */
  names(): IterableIterator<KeyedWrite> {
    return this.#writes.values();
  }

  /** To be called only for a write that no request uses. */
  forget(write: KeyedWrite): void {
    this.#records.forget(write);
  }

  /** A cheap test before a look-up. */
  get hasUnresolved(): boolean {
    return this.#unresolvedAt.size > 0;
  }

  /** Whether a write of this name is unresolved, a request in progress included. Does not join it. @param by not those of other clients */
  isUnresolved(name: string, by: OwnerDigests = {}): boolean {
    return this.#find(name, (write) => isUnresolved(write) && !haveOtherOwners(write, by)) !== undefined;
  }

  /** Whose share of the unresolved writes this name takes; undefined if none of its writes is unresolved. */
  unresolvedOwner(name: string): number | undefined {
    return this.#find(name, isUnresolved)?.owner;
  }

  /** Whether any write at this upstream is unresolved: for requests whose key is not known. */
  hasUnresolvedAt(upstream: string): boolean {
    return this.#unresolvedAt.has(upstream);
  }

  /**
   * Where each client has keys of its own: if a write is new, and too many other clients have writes of its name, forgets the oldest that
   * is answered. Returns false if there is none. @param isGranted see `join`
   */
  makeRoomFor(identity: WriteIdentity, isGranted = false): boolean {
    const isFull = identity.keyOwner !== undefined && this.#findIfTooMany(identity.name) !== undefined;
    if (!isFull || this.#findKnown(identity, isGranted) !== undefined) return true;
    const oldest = [...this.writesOf(identity.name)].findLast(isForgettable);
    if (oldest !== undefined) this.forget(oldest);
    return oldest !== undefined;
  }

  /** Joins a write as one of its requests. To be followed by `leave`. @param isGranted it has the key: not one that it only may repeat */
  join(identity: WriteIdentity, isGranted = false): KeyedWrite {
    const oldest = identity.keyOwner === undefined ? this.#findIfTooMany(identity.name) : undefined;
    const isOther = oldest !== undefined && isGranted && isAmbiguous(oldest, identity);
    const write = this.#findKnown(identity, isGranted) ?? (isOther ? undefined : oldest) ?? this.#add(identity);
    // With the same credential, a request with another body is the same write, so the body is kept only for one credential.
    if (write.credential !== identity.credential && !isAmbiguous(write, identity)) write.body = undefined;
    write.requestCount += 1;
    return write;
  }

  leave(write: KeyedWrite): void {
    write.requestCount -= 1;
    this.#reindex(write);
  }

  /** One of its requests, with this credential, was sent. To be followed by `onAttemptEnd`. */
  onSent(write: KeyedWrite, now: Millis, endpoint?: string, credential: number = write.credential): void {
    if (write.state === 'new' && write.sentCount === 0) {
      write.firstSentAt = now;
      write.endpoint = endpoint;
    }
    write.sentCount += 1;
    write.sentFor = addCredential(write.sentFor, credential);
    this.#reindex(write);
  }

  /** The first send that may have had an effect is another one. @param now undefined if the time stays as it is */
  onSentAgain(write: KeyedWrite, endpoint: string | undefined, now: Millis | undefined): void {
    write.endpoint = endpoint;
    if (now !== undefined) write.firstSentAt = now;
    this.#reindex(write);
  }

  /** A response to the write is being sent to a client with this credential. To be followed by `onResponseEnd`. */
  onResponse(write: KeyedWrite, credential: number, isFinal: boolean): void {
    // Clients have received only declines so far. A decline says nothing about a later attempt.
    if (isFinal && write.finalFor === NO_CREDENTIALS) write.wasDelivered = false;
    write.respondingFor = addCredential(write.respondingFor, credential);
  }

  /** @param isWhole the client has received all of it */
  onResponseEnd(write: KeyedWrite, credential: number, isWhole: boolean): void {
    write.respondingFor = removeOneCredential(write.respondingFor, credential);
    write.wasDelivered ||= isWhole;
    this.#reindex(write);
  }

  onAttemptEnd(write: KeyedWrite, credential: number = write.credential): void {
    write.sentCount -= 1;
    write.sentFor = removeOneCredential(write.sentFor, credential);
    this.#reindex(write);
  }

  /** The record of a write. @param ttl how long the upstream remembers its key; undefined if not known */
  recall(write: KeyedWrite, ttl: Millis | undefined, now: Millis): KeyRecord | undefined {
    if (write.state === 'new') return undefined;
    const { firstSentAt, state } = write;
    if (ttl !== undefined || now <= firstSentAt + DEFAULT_KEY_LIFETIME) {
      return { firstSentAt, isAnswered: state === 'answered' };
    }
    this.#records.forget(write);
    return undefined;
  }

  /** @param credential of the request that the record comes from */
  record(write: KeyedWrite, record: KeyRecord, credential: number = write.credential): void {
    this.#records.record(write, record, credential);
    this.#reindex(write);
  }

  /** A response to a request with this credential was not delivered in full. @param wasFinal whether it was final */
  onUndelivered(write: KeyedWrite, wasFinal: boolean, credential: number = write.credential): void {
    this.#records.onUndelivered(write, wasFinal, credential);
    this.#reindex(write);
  }

  #reindex(write: KeyedWrite): void {
    const { upstream } = write;
    const open = this.#unresolvedAt.get(upstream);
    if (isUnresolved(write)) {
      if (open === undefined) this.#unresolvedAt.set(upstream, new Set([write]));
      else open.add(write);
    } else if (open?.delete(write) === true && open.size === 0) this.#unresolvedAt.delete(upstream);
    if (write.requestCount === 0 && write.state === 'new') this.#drop(write);
    this.#journal?.onChange(write);
  }

  #find(name: string, matches: (write: KeyedWrite) => boolean): KeyedWrite | undefined {
    for (let write = this.#writes.get(name); write !== undefined; write = write.next) if (matches(write)) return write;
    return undefined;
  }

  /** If neither credential nor body identifies the write, it may be any of its name: the oldest unresolved one matters. */
  #findKnown(identity: WriteIdentity, isGranted = false): KeyedWrite | undefined {
    const { name, credential, body } = identity;
    const isSame = (known: KeyedWrite) => isSameWrite(known, identity) && !(isGranted && isAmbiguous(known, identity));
    const found =
      this.#find(name, (known) => known.credential === credential && isSame(known)) ??
      this.#find(name, (known) => body !== undefined && known.body === body && isSame(known));
    if (found !== undefined) return found;
    const same = [...this.writesOf(name)].filter(isSame);
    return same.findLast(isUnresolved) ?? same[0]; // the newest is first
  }

  /** The oldest, if a name has MAX_PER_NAME writes. */
  #findIfTooMany(name: string): KeyedWrite | undefined {
    let count = 0;
    return this.#find(name, () => (count += 1) === MAX_PER_NAME);
  }

  #add(identity: WriteIdentity): KeyedWrite {
    const { name } = identity;
    const next = this.#writes.get(name);
    const state = 'new';
    const write: KeyedWrite = {
      ...identityOf(identity),
      ...{ next, state, firstSentAt: 0, endpoint: undefined },
      ...{ finalFor: NO_CREDENTIALS, unresolvedFor: NO_CREDENTIALS, ringIndex: -1, requestCount: 0, sentCount: 0 },
      ...{ sentFor: NO_CREDENTIALS, respondingFor: NO_CREDENTIALS, wasDelivered: false },
      ...{ journalId: 0, journaledAs: undefined },
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
