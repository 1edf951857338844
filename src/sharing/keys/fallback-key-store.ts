/** Keys that are shared with other processes, and, while their store is lost, those that this process knows itself. */
import type {
  KeyClaim,
  KeyClaimEnd,
  KeyClaimListener,
  KeyClaimRequest,
  KeyStore,
} from '../../core/idempotency/key-store.ts';
import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import type { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';

/** A key store of which a part of the requests may use the registry of this process: those with `onStoreLost: local`. */
export class FallbackKeyStore implements KeyStore {
  readonly #shared: KeyStore;
  readonly #local: RegistryKeyStore;

  constructor(shared: KeyStore, local: RegistryKeyStore) {
    this.#shared = shared;
    this.#local = local;
  }

  get bounds(): readonly ResourceBound[] {
    const [, ...records] = this.#local.bounds; // both know the waiting requests
    return [...this.#shared.bounds, ...records];
  }

  makeClaim(request: KeyClaimRequest): KeyClaim {
    if (request.onStoreLost === 'refuse') return this.#shared.makeClaim(request);
    const local = (): KeyClaim => this.#local.makeClaim(request);
    // The shared store does not know the writes that this process has recorded itself.
    const isLocal = this.#local.keys.knows(request.identity.name);
    return new FallbackKeyClaim(isLocal ? local() : this.#shared.makeClaim(request), local);
  }

  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
  ): void {
    this.#local.findUnresolved(upstream, names, (isUnresolved) => {
      if (isUnresolved) onFound(true);
      else this.#shared.findUnresolved(upstream, names, onFound);
    });
  }

  mayHaveUnresolved(upstream?: string): boolean {
    return this.#shared.mayHaveUnresolved(upstream);
  }
}

/** A claim in the shared store that continues in this process if the store is lost before the key is granted. */
class FallbackKeyClaim implements KeyClaim {
  readonly #makeLocal: () => KeyClaim;
  #claim: KeyClaim;

  constructor(claim: KeyClaim, makeLocal: () => KeyClaim) {
    this.#claim = claim;
    this.#makeLocal = makeLocal;
  }

  get endpoint(): string | undefined {
    return this.#claim.endpoint;
  }

  get hasWrite(): boolean {
    return this.#claim.hasWrite;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayBeDone) => {
      if (why !== 'key_store_lost') return listener.onClaimRefused(why, mayBeDone);
      this.#claim.close();
      this.#claim = this.#makeLocal();
      this.#claim.begin(listener, deadline);
    };
    this.#claim.begin(
      { onClaimed: (record, hasWaited) => listener.onClaimed(record, hasWaited), onClaimRefused },
      deadline,
    );
  }

  stopWaiting(): void {
    this.#claim.stopWaiting();
  }

  onSend(endpoint: string): void {
    this.#claim.onSend(endpoint);
  }

  recordOutcome(meaning: WriteOutcome): void {
    this.#claim.recordOutcome(meaning);
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    this.#claim.lookUp(onRecord);
  }

  release(end: KeyClaimEnd): void {
    this.#claim.release(end);
  }

  onUndelivered(): void {
    this.#claim.onUndelivered();
  }

  close(): void {
    this.#claim.close();
  }
}
