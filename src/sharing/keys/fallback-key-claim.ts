import type { KeyRecord, KnownWrite } from '../../core/idempotency/key-record.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener } from '../../core/idempotency/key-store.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';

export interface FallbackKeyClaimParts {
  /** Undefined while a request that began without the store has the key in this process. */
  readonly shared: KeyClaim | undefined;
  /** Makes the claim in this process that takes the place of the shared one. */
  readonly makeLocal: () => KeyClaim;
  /** Called once for each claim that was made so: its request does not use the key any more. */
  readonly onLocalEnd: () => void;
  /** What this process did without the store; undefined if nothing. */
  readonly recallLocal: () => KnownWrite | undefined;
  /**
   * Begins a claim in this process beside the shared one, which has been granted, so that this process knows the write too.
   * @param record what is known of the write
   */
  readonly makeCopy: (record: KeyRecord | undefined, endpoint: string | undefined) => KeyClaim;
}

/** A claim in the shared store that continues in this process if the store is lost before the key is granted. */
export class FallbackKeyClaim implements KeyClaim {
  readonly #parts: FallbackKeyClaimParts;
  #claim: KeyClaim;
  #copy: KeyClaim | undefined;
  #known: KnownWrite | undefined;
  #isLocal: boolean;
  #hasEnded = false;

  constructor(parts: FallbackKeyClaimParts) {
    this.#parts = parts;
    this.#isLocal = parts.shared === undefined;
    this.#claim = parts.shared ?? parts.makeLocal();
  }

  get endpoint(): string | undefined {
    return this.#claim.endpoint ?? this.#known?.endpoint;
  }

  get hasWrite(): boolean {
    return this.#claim.hasWrite;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    const onClaimed: KeyClaimListener['onClaimed'] = (record, hasWaited) => {
      if (this.#isLocal) return listener.onClaimed(record, hasWaited);
      if (this.#copy === undefined) this.#known = this.#parts.recallLocal();
      const combined = combineRecords(record, this.#known?.record);
      this.#copy ??= this.#parts.makeCopy(combined, this.endpoint);
      listener.onClaimed(combined, hasWaited);
    };
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayBeDone) => {
      if (why !== 'key_store_lost' || this.#isLocal) {
        this.#end();
        return listener.onClaimRefused(why, mayBeDone);
      }
      this.#claim.close();
      this.#claim = this.#parts.makeLocal();
      this.#isLocal = true;
      this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
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
    this.#claim.lookUp((record) => onRecord(combineRecords(record, this.#known?.record)));
  }

  release(end: KeyClaimEnd): void {
    this.#claim.release(end);
    this.#copy?.release(end);
    this.#end();
  }

  onUndelivered(): void {
    this.#claim.onUndelivered();
    this.#copy?.onUndelivered();
  }

  close(): void {
    this.#claim.close();
    this.#copy?.close();
  }

  #end(): void {
    if (!this.#isLocal || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#parts.onLocalEnd();
  }
}

/** What two stores know of a write: the first of all sends counts, and a response that either of them knows. */
function combineRecords(shared: KeyRecord | undefined, local: KeyRecord | undefined): KeyRecord | undefined {
  if (shared === undefined || local === undefined) return shared ?? local;
  const { isInUse = false } = shared;
  const firstSentAt = Math.min(shared.firstSentAt, local.firstSentAt);
  const response = local.isAnswered && !shared.isAnswered ? local : shared;
  return { ...response, firstSentAt, ...(isInUse ? { isInUse } : {}) };
}
