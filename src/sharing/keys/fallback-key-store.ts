/** Keys that are shared with other processes, and, while their store is lost, those that this process knows itself. */
import type { KeyRecord, KnownWrite } from '../../core/idempotency/key-record.ts';
import type { KeyClaim, KeyClaimRequest, KeyStore } from '../../core/idempotency/key-store.ts';
import type { WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import { isUnresolved } from '../../core/idempotency/keyed-write.ts';
import type { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { FallbackKeyClaim } from './fallback-key-claim.ts';

/** Names written while the store was lost. Beyond it, the oldest count as shared: what the store knows of them applies. */
const MAX_LOCAL_NAMES = 100_000;

/**
 * A key store of which a part of the requests may use the registry of this process: those with `onStoreLost: local`. The registry
 * knows all writes of these requests, so that it can take the place of the shared store.
 */
export class FallbackKeyStore implements KeyStore {
  readonly #shared: KeyStore;
  readonly #local: RegistryKeyStore;
  readonly #maxLocalNames: number;
  /**
   * Names written while the shared store was lost, which therefore does not know these writes; with the number of requests that
   * have their keys, or wait for them, in this process alone.
   */
  readonly #localNames = new Map<string, number>();

  constructor(shared: KeyStore, local: RegistryKeyStore, maxLocalNames = MAX_LOCAL_NAMES) {
    this.#shared = shared;
    this.#local = local;
    this.#maxLocalNames = maxLocalNames;
  }

  get bounds(): readonly ResourceBound[] {
    const [, ...records] = this.#local.bounds; // both know the waiting requests
    return [...this.#shared.bounds, ...records];
  }

  makeClaim(request: KeyClaimRequest): KeyClaim {
    if (request.onStoreLost === 'refuse') return this.#shared.makeClaim(request);
    const { name } = request.identity;
    const isUsedHere = this.#isLocal(name) && this.#requestsOf(name) > 0;
    return new FallbackKeyClaim({
      shared: isUsedHere ? undefined : this.#shared.makeClaim(request),
      makeLocal: () => {
        this.#setLocal(name, this.#requestsOf(name) + 1);
        return this.#local.makeClaim(request);
      },
      onLocalEnd: () => this.#localNames.has(name) && this.#localNames.set(name, this.#requestsOf(name) - 1),
      recallLocal: () => (this.#isLocal(name) ? this.#recall(request) : undefined),
      makeCopy: (record, endpoint) => this.#makeCopy(request, record, endpoint),
    });
  }

  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
  ): void {
    if (this.#hasUnresolvedLocally(upstream, names)) onFound(true);
    else this.#shared.findUnresolved(upstream, names, onFound);
  }

  mayHaveUnresolved(upstream?: string): boolean {
    return this.#shared.mayHaveUnresolved(upstream);
  }

  /** Only the names that the shared store does not know: other processes may have resolved the others. */
  #hasUnresolvedLocally(upstream: string, names: readonly string[] | undefined): boolean {
    const { keys } = this.#local;
    if (!keys.hasUnresolvedAt(upstream)) return false;
    for (const name of names ?? this.#localNames.keys()) {
      if (!this.#isLocal(name)) continue;
      for (const write of keys.writesOf(name)) if (write.upstream === upstream && isUnresolved(write)) return true;
    }
    return false;
  }

  #isLocal(name: string): boolean {
    if (!this.#localNames.has(name)) return false;
    if (this.#local.keys.knows(name)) return true;
    this.#localNames.delete(name);
    return false;
  }

  #requestsOf(name: string): number {
    return this.#localNames.get(name) ?? 0;
  }

  #setLocal(name: string, requests: number): void {
    this.#localNames.delete(name);
    this.#localNames.set(name, requests);
    const [oldest] = this.#localNames.keys();
    if (this.#localNames.size > this.#maxLocalNames && oldest !== undefined) this.#localNames.delete(oldest);
  }

  #recall({ identity, ttl }: KeyClaimRequest): KnownWrite | undefined {
    const { keys, clock } = this.#local;
    const write = keys.join(identity);
    const record = keys.recall(write, ttl, clock.now());
    const { endpoint } = write;
    keys.leave(write);
    return record && { record, endpoint };
  }

  /** A claim in the registry of this process that has the key beside a granted claim in the shared store. */
  #makeCopy(request: KeyClaimRequest, record: KeyRecord | undefined, endpoint: string | undefined): KeyClaim {
    if (record !== undefined) this.#learn(request.identity, record, endpoint);
    const isPassing = request.concurrent === 'pass';
    const copy = this.#local.makeClaim({ ...request, concurrent: isPassing ? 'pass' : 'refuse' });
    copy.begin(NOBODY, Number.POSITIVE_INFINITY);
    if (copy.hasWrite) return copy;
    // A request that continued in this process has the key there.
    const passing = this.#local.makeClaim({ ...request, concurrent: 'pass' });
    passing.begin(NOBODY, Number.POSITIVE_INFINITY);
    return passing;
  }

  #learn(identity: WriteIdentity, record: KeyRecord, endpoint: string | undefined): void {
    const { keys } = this.#local;
    const write = keys.join(identity);
    write.endpoint ??= endpoint;
    keys.record(write, record, identity.credential);
    if (record.firstSentAt < write.firstSentAt) keys.onSentAgain(write, write.endpoint, record.firstSentAt);
    keys.leave(write);
  }
}

const NOBODY = { onClaimed: () => undefined, onClaimRefused: () => undefined };
