import { RecencyMap } from '../../core/collections/recency-map.ts';
import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import type { KeyClaim, KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { OwnerDigests } from '../../core/idempotency/keyed-write.ts';
import { isAmbiguous } from '../../core/idempotency/keyed-write.ts';
import type { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { keptFor } from './name-lifetime.ts';

/** Names used while the shared store was lost. Beyond it, only what the store knows of the oldest applies. */
const MAX_NAMES = 100_000;

const NOBODY = { onClaimed: () => undefined, onClaimRefused: () => undefined };

/** What this process knows itself of the writes that it shares, so that it can go on while their store is lost. */
export class LocalWrites {
  readonly #store: RegistryKeyStore;
  readonly #onDecidedLocally: (upstream: string) => void;
  readonly #maxNames: number;
  /**
   * Names used while the shared store was lost, which therefore does not know all about them; with the number of requests that have
   * the key, or wait for it, in this process alone.
   */
  readonly #names = new RecencyMap<string, number>();

  /**
   * Names of writes that exchanges of this process have left unresolved, or answered: such a response may be cut. What this process has
   * learned from others does not count: it may have been a request in progress, which did nothing.
   */
  readonly #left = new RecencyMap<string, true>();

  /** @param onDecidedLocally called once for each request that this process decides about alone */
  constructor(store: RegistryKeyStore, onDecidedLocally: (upstream: string) => void, maxNames = MAX_NAMES) {
    this.#store = store;
    this.#onDecidedLocally = onDecidedLocally;
    this.#maxNames = maxNames;
  }

  get bounds(): readonly ResourceBound[] {
    return this.#store.bounds;
  }

  /** Whether this process has used the name without the shared store, and still knows it. */
  has(name: string): boolean {
    if (!this.#names.has(name)) return false;
    if (this.#store.keys.knows(name)) return true;
    this.#names.delete(name);
    return false;
  }

  /** Whether a request that began without the shared store has the key, or waits for it. */
  isInUse(name: string): boolean {
    return this.has(name) && this.#requestsOf(name) > 0;
  }

  /** An exchange of this process has left the write answered or unresolved. */
  onLeft({ identity: { name } }: KeyClaimRequest): void {
    this.#left.set(name, true);
    if (this.#left.size > this.#maxNames) this.#left.deleteOldest();
  }

  /**
   * Whether an exchange of this process has left the write unresolved, so recently that the store keeps even resolved ones. If it knows
   * nothing of it, it has come back empty or with older data, or has evicted it.
   */
  hasLeftUnresolved({ identity: { name }, ttl }: KeyClaimRequest): boolean {
    return this.#left.has(name) && this.#store.isUnresolvedWithin(name, keptFor(ttl));
  }

  /** An operator has forgotten a write of this name. */
  forget(name: string): void {
    if (!this.#left.delete(name)) return;
    const { keys } = this.#store;
    for (const write of [...keys.writesOf(name)]) if (write.requestCount === 0) keys.forget(write);
  }

  claim(request: KeyClaimRequest): KeyClaim {
    return this.#store.makeClaim(request);
  }

  /** A claim without the shared store begins. To be followed by `onEnd`. */
  onBegin({ identity: { name, upstream } }: KeyClaimRequest): void {
    this.#names.set(name, this.#requestsOf(name) + 1);
    if (this.#names.size > this.#maxNames) this.#names.deleteOldest();
    this.#onDecidedLocally(upstream);
  }

  onEnd({ identity: { name } }: KeyClaimRequest): void {
    const requests = this.#requestsOf(name);
    if (requests > 0) this.#names.set(name, requests - 1);
  }

  /** A claim that has the key beside a claim that the shared store has granted. @param record what the shared store knows */
  copy(request: KeyClaimRequest, record: KeyRecord | undefined, endpoint: string | undefined): KeyClaim {
    this.#store.keys.makeRoomFor(request.identity, true); // the shared store has room: it granted the key
    // Not one that it may repeat, which the shared store does not know: it would refuse the key.
    const write = this.#store.keys.join(request.identity, true);
    const copy = this.#beginCopy(request, record, endpoint);
    this.#store.keys.leave(write);
    return copy;
  }

  #beginCopy(request: KeyClaimRequest, record: KeyRecord | undefined, endpoint: string | undefined): KeyClaim {
    this.learn(request, record, endpoint);
    const isPassing = request.concurrent === 'pass';
    const copy = this.#store.makeClaim({ ...request, concurrent: isPassing ? 'pass' : 'refuse' });
    copy.begin(NOBODY, Number.POSITIVE_INFINITY);
    if (copy.hasWrite) return copy;
    // A request that others have presumed ended has the key here.
    const passing = this.#store.makeClaim({ ...request, concurrent: 'pass' });
    passing.begin(NOBODY, Number.POSITIVE_INFINITY);
    return passing;
  }

  /** Adds what the shared store knows of the write: the first of all sends counts. Nothing if it may be another one than is known here. */
  learn({ identity }: KeyClaimRequest, record: KeyRecord | undefined, endpoint: string | undefined): void {
    if (record === undefined) return;
    const { keys } = this.#store;
    const write = keys.join(identity);
    if (!isAmbiguous(write, identity)) {
      write.endpoint ??= endpoint;
      keys.record(write, record, identity.credential);
      if (record.firstSentAt < write.firstSentAt) keys.onSentAgain(write, write.endpoint, record.firstSentAt);
    }
    keys.leave(write);
  }

  /**
   * Whether a write that the shared store does not know is unresolved: others may have resolved those that it knows.
   * @param names undefined for any
   * @param by see `KeyStore.findUnresolved`
   */
  hasUnresolved(upstream: string, names: readonly string[] | undefined, by?: OwnerDigests): boolean {
    const { keys } = this.#store;
    if (!keys.hasUnresolvedAt(upstream)) return false;
    for (const name of names ?? this.#names.keys()) {
      if (!this.has(name)) continue;
      const [first] = keys.writesOf(name); // all writes of a name are at one upstream
      if (first?.upstream === upstream && keys.isUnresolved(name, by)) return true;
    }
    return false;
  }

  #requestsOf(name: string): number {
    return this.#names.get(name) ?? 0;
  }
}
