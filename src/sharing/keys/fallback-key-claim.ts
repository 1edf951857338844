import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import { isUnconfirmed } from '../../core/idempotency/key-record.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener, KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';
import type { LocalWrites } from './local-writes.ts';

export interface FallbackKeyClaimParts {
  readonly request: KeyClaimRequest;
  /** Undefined while a request that began without the store has the key in this process. */
  readonly shared: KeyClaim | undefined;
  readonly local: LocalWrites;
}

/**
 * A claim in the shared store, with a copy in this process. Without the store, this process decides about it alone, if
 * `onStoreLost` allows that. What this process did without the store counts as well once it responds again.
 */
export class FallbackKeyClaim implements KeyClaim {
  readonly #parts: FallbackKeyClaimParts;
  #claim: KeyClaim;
  /** In this process, beside the claim in the shared store. */
  #copy: KeyClaim | undefined;
  #isAlone: boolean;
  /** The copy knows what the shared store does not. */
  #isCombined = false;
  /** The last look-up had no response, and this process goes on with what it knows. */
  #isDecidedHere = false;
  /** An attempt of this exchange may have taken effect, and no later one was answered. */
  #isUnresolved = false;
  /** Counted as a request without the store. */
  #isCounted = false;

  constructor(parts: FallbackKeyClaimParts) {
    const { request, shared, local } = parts;
    this.#parts = parts;
    this.#isAlone = shared === undefined;
    this.#claim = shared ?? local.claim(request);
  }

  get endpoint(): string | undefined {
    return this.#claim.endpoint ?? (this.#isCombined ? this.#copy?.endpoint : undefined);
  }

  get hasWrite(): boolean {
    return this.#claim.hasWrite;
  }

  get isCurrent(): boolean {
    return this.#isDecidedHere || this.#claim.isCurrent;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    const { request, local } = this.#parts;
    const onClaimed: KeyClaimListener['onClaimed'] = (record, hasWaited) => {
      if (this.#isAlone) return listener.onClaimed(record, hasWaited);
      const isStoreBehind =
        local.has(request.identity.name) || (record === undefined && local.hasLeftUnresolved(request));
      if (isStoreBehind) return this.#claimHere(record, hasWaited, listener, deadline);
      this.#copy ??= local.copy(request, record, this.endpoint);
      listener.onClaimed(record, hasWaited);
    };
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayHaveTakenEffect) => {
      if (this.#isAlone || why !== 'key_store_lost' || request.onStoreLost === 'refuse') {
        this.#end();
        return listener.onClaimRefused(why, mayHaveTakenEffect);
      }
      this.#claim.close();
      this.#claim = local.claim(request);
      this.#isAlone = true;
      this.#beginAlone();
      this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
    };
    if (this.#isAlone) this.#beginAlone();
    this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
  }

  stopWaiting(): void {
    this.#claim.stopWaiting();
    this.#copy?.stopWaiting();
  }

  onSend(endpoint: string): void {
    this.#claim.onSend(endpoint);
    this.#copy?.onSend(endpoint);
  }

  recordOutcome(meaning: WriteOutcome): void {
    if (meaning === 'answered') this.#isUnresolved = false;
    else this.#isUnresolved ||= meaning === 'may_have_taken_effect';
    this.#claim.recordOutcome(meaning);
    this.#copy?.recordOutcome(meaning);
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    const copy = this.#isCombined ? this.#copy : undefined;
    const { request, local } = this.#parts;
    this.#claim.lookUp((found) => {
      const record = this.#settleDoubt(found);
      if (copy === undefined) return onRecord(record);
      local.learn(request, record, this.#claim.endpoint);
      copy.lookUp((known) => onRecord(withPresent(known, record)));
    });
  }

  release(end: KeyClaimEnd): void {
    if (end.kind !== 'other' || this.#isUnresolved) this.#parts.local.onLeft(this.#parts.request);
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
    this.#end();
  }

  /** The store has granted the key, and does not know what this process does. A request that began without the store may have it in this process, so this one waits for it. */
  #claimHere(record: KeyRecord | undefined, hasWaited: boolean, listener: KeyClaimListener, deadline: Millis): void {
    const { request, local } = this.#parts;
    local.learn(request, record, this.#claim.endpoint);
    this.#copy ??= local.claim(request);
    this.#isCombined = true;
    const onClaimed: KeyClaimListener['onClaimed'] = (known, hasWaitedHere) =>
      listener.onClaimed(withPresent(known, record), hasWaited || hasWaitedHere);
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayHaveTakenEffect) => {
      this.#claim.release({ kind: 'other' });
      listener.onClaimRefused(why, mayHaveTakenEffect || isUnconfirmed(record));
    };
    this.#copy.begin({ onClaimed, onClaimRefused }, deadline);
  }

  /** Without a response of the store this process goes on with what it knows, if it may. */
  #settleDoubt(record: KeyRecord | undefined): KeyRecord | undefined {
    this.#isDecidedHere = record?.isInDoubt === true && this.#parts.request.onStoreLost === 'local';
    if (record === undefined || !this.#isDecidedHere) return record;
    this.#beginAlone();
    const { isInDoubt: _, ...known } = record;
    return known;
  }

  #beginAlone(): void {
    if (this.#isCounted) return; // a claim may begin again
    this.#isCounted = true;
    this.#parts.local.onBegin(this.#parts.request);
  }

  #end(): void {
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.#parts.local.onEnd(this.#parts.request);
  }
}

/** @param record of the shared store, which also shows whether another process has the key or is sending a response */
function withPresent(known: KeyRecord | undefined, record: KeyRecord | undefined): KeyRecord | undefined {
  if (known === undefined) return undefined;
  const isInUse = record?.isInUse === true ? { isInUse: true } : {};
  const isInDoubt = record?.isInDoubt === true ? { isInDoubt: true } : {};
  return { ...known, ...isInUse, ...isInDoubt, ...(record?.isArriving === true ? { isArriving: true } : {}) };
}
