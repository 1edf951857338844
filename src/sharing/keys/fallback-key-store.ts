/** Keys that are shared with other processes, and, while their store is lost, those that this process knows itself. */
import type { KeyClaim, KeyClaimRequest, KeyStore } from '../../core/idempotency/key-store.ts';
import type { OwnerDigests } from '../../core/idempotency/keyed-write.ts';
import type { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { FallbackKeyClaim } from './fallback-key-claim.ts';
import { LocalWrites } from './local-writes.ts';

/**
 * A shared key store of which a part of the requests may go on without it: those with `onStoreLost: local`. This process knows
 * the writes of all its requests, because a reload may change that setting, and because an outage is when operators do so.
 */
export class FallbackKeyStore implements KeyStore {
  readonly #shared: KeyStore;
  readonly #local: LocalWrites;

  /** @param local the registry of this process @param onDecidedLocally called once for each request that is decided without the store */
  constructor(
    shared: KeyStore,
    local: RegistryKeyStore,
    onDecidedLocally: (upstream: string) => void = () => undefined,
    maxLocalNames?: number,
  ) {
    this.#shared = shared;
    this.#local = new LocalWrites(local, onDecidedLocally, maxLocalNames);
  }

  get bounds(): readonly ResourceBound[] {
    const [, ...records] = this.#local.bounds; // both know the waiting requests
    return [...this.#shared.bounds, ...records];
  }

  makeClaim(request: KeyClaimRequest): KeyClaim {
    const isUsedHere = this.#local.isInUse(request.identity.name);
    const shared = isUsedHere ? undefined : this.#shared.makeClaim(request);
    return new FallbackKeyClaim({ request, shared, local: this.#local });
  }

  /** An operator has forgotten a write of this name. */
  forget(name: string): void {
    this.#local.forget(name);
  }

  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
    by?: OwnerDigests,
  ): void {
    if (this.#local.hasUnresolved(upstream, names, by)) onFound(true);
    else this.#shared.findUnresolved(upstream, names, onFound, by);
  }

  mayHaveUnresolved(upstream?: string): boolean {
    return this.#shared.mayHaveUnresolved(upstream);
  }
}
