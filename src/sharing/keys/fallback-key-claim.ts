import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener } from '../../core/idempotency/key-store.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';

export interface FallbackKeyClaimParts {
  /** Makes the claim in this process that takes the place of the shared one. */
  readonly makeLocal: () => KeyClaim;
  /**
   * Begins a claim in this process beside the shared one, which has been granted, so that this process knows the write too.
   * @param record what the shared store knows
   */
  readonly makeCopy: (record: KeyRecord | undefined, endpoint: string | undefined) => KeyClaim;
}

/** A claim in the shared store that continues in this process if the store is lost before the key is granted. */
export class FallbackKeyClaim implements KeyClaim {
  readonly #parts: FallbackKeyClaimParts;
  #claim: KeyClaim;
  #copy: KeyClaim | undefined;
  #isLocal = false;

  constructor(shared: KeyClaim, parts: FallbackKeyClaimParts) {
    this.#parts = parts;
    this.#claim = shared;
  }

  get endpoint(): string | undefined {
    return this.#claim.endpoint;
  }

  get hasWrite(): boolean {
    return this.#claim.hasWrite;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    const onClaimed: KeyClaimListener['onClaimed'] = (record, hasWaited) => {
      if (!this.#isLocal) this.#copy ??= this.#parts.makeCopy(record, this.endpoint);
      listener.onClaimed(record, hasWaited);
    };
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayBeDone) => {
      if (why !== 'key_store_lost') return listener.onClaimRefused(why, mayBeDone);
      this.#claim.close();
      this.#claim = this.#parts.makeLocal();
      this.#isLocal = true;
      this.#claim.begin(listener, deadline);
    };
    this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
  }

  stopWaiting(): void {
    this.#claim.stopWaiting();
  }

  onSend(endpoint: string): void {
    this.#claim.onSend(endpoint);
    this.#copy?.onSend(endpoint);
  }

  recordOutcome(meaning: WriteOutcome): void {
    this.#claim.recordOutcome(meaning);
    this.#copy?.recordOutcome(meaning);
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    this.#claim.lookUp(onRecord);
  }

  release(end: KeyClaimEnd): void {
    this.#claim.release(end);
    this.#copy?.release(end);
  }

  onUndelivered(): void {
    this.#claim.onUndelivered();
    this.#copy?.onUndelivered();
  }

  close(): void {
    this.#claim.close();
    this.#copy?.close();
  }
}
