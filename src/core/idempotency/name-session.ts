/** The writes of one name as several processes share them: read, changed, and stored again. */
import type { Clock, Millis } from '../scalars.ts';
import type { ClaimProgress } from './claim-progress.ts';
import type { StoredWrite } from './key-journal.ts';
import type { KeyClaimRequest } from './key-store.ts';
import { KeyRegistry } from './key-registry.ts';
import type { ClaimRefusalReason, KeyRecord, KnownWrite } from './key-record.ts';
import { identityOf, type KeyedWrite, type OwnerDigests } from './keyed-write.ts';
import type { WriteMatches, WriteRemoval } from './key-inspection.ts';
import { MAX_AMBIGUOUS, onlyWriteOf, searchAll, toWriteView, type WriteSearchQuery } from './write-search.ts';
import type { WriteOutcome } from './write-outcome.ts';
import { RegistryKeyClaim } from './registry-key-claim.ts';
import type { StoredClaim } from './registry-key-claim-options.ts';

/** A write as processes share it. */
export interface SharedWrite extends Omit<StoredWrite, 'state'> {
  readonly state: KeyedWrite['state'];
  readonly wasDelivered: boolean;
}

/** A claim of any of the processes. */
export interface SharedClaim {
  /** Unique among all claims. */
  readonly id: string;
  /** The process that made it. */
  readonly owner: string;
  /** The index of its write. */
  readonly write: number;
  readonly request: KeyClaimRequest;
  readonly progress: ClaimProgress;
}

/** What processes share of the writes of one name. */
export interface NameState {
  /** The oldest first. */
  readonly writes: readonly SharedWrite[];
  readonly claims: readonly SharedClaim[];
}

export type ClaimResult =
  | (KnownWrite & { readonly kind: 'claimed' })
  | { readonly kind: 'refused'; readonly why: ClaimRefusalReason; readonly mayHaveTakenEffect: boolean }
  /** Another request has the key. */
  | { readonly kind: 'waits' };

interface HeldClaim {
  readonly owner: string;
  readonly request: KeyClaimRequest;
  readonly claim: RegistryKeyClaim;
}

/** Never called: a claim that cannot have the key now is not kept. */
const NO_TIMER = (_delay: Millis, _run: () => void) => () => undefined;

/**
 * Runs the registry of one process on the stored state of one name. Nothing outside changes until the caller stores `state`, so
 * the same operations can be run again on a newer state.
 */
export class NameSession {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #keys = new KeyRegistry();
  readonly #claims = new Map<string, HeldClaim>();
  /** Whether `state` differs from what was read. */
  hasChanged = false;
  /** A response has ended, and claims know that it was being sent. */
  hasEndedResponse = false;

  /** @param known the state passed in does not change; times are on this clock */
  constructor(name: string, known: NameState | undefined, clock: Clock) {
    this.#name = name;
    this.#clock = clock;
    if (known === undefined) return;
    const writes = known.writes.map((each) => this.#restoreWrite(each));
    for (const { id, owner, write: index, request, progress } of known.claims) {
      const write = writes[index];
      if (write === undefined) continue;
      const resumed = { write, progress: { ...progress } };
      this.#claims.set(id, { owner, request, claim: this.#makeClaim(request, resumed) });
    }
    for (const write of writes) this.#keys.leave(write);
  }

  /** The requests of these claims have ended, and may have done their writes. */
  abandon(isGone: (owner: string, id: string) => boolean): void {
    for (const [id, { owner, claim }] of this.#claims) {
      if (!isGone(owner, id)) continue;
      claim.abandon();
      this.#claims.delete(id);
      this.hasChanged = true;
    }
  }

  /** Claims the key. From now on the write counts as sent. */
  claim(id: string, owner: string, request: KeyClaimRequest): ClaimResult {
    const claim = this.#makeClaim(request);
    let result: ClaimResult = { kind: 'waits' };
    const onClaimed = (): void => {
      result = { kind: 'claimed', ...claim.known };
    };
    const onClaimRefused = (why: ClaimRefusalReason, mayHaveTakenEffect: boolean): void => {
      result = { kind: 'refused', why, mayHaveTakenEffect };
    };
    claim.begin({ onClaimed, onClaimRefused }, Number.POSITIVE_INFINITY);
    if (claim.stored === undefined) claim.release({ kind: 'other' });
    else {
      this.#claims.set(id, { owner, request, claim });
      this.hasChanged = true;
    }
    return result;
  }

  /** Changes a claim; does nothing if others have taken it for abandoned. @returns whether it is there */
  change(id: string, run: (claim: RegistryKeyClaim) => unknown): boolean {
    const found = this.#claims.get(id);
    if (found === undefined) return false;
    run(found.claim);
    this.hasChanged = true;
    return true;
  }

  /**
   * Brings a claim back that was presumed abandoned, or that was lost. Others may have the key by now.
   * @param known what was known of its write, in case that was lost too
   */
  restore({ id, owner, request, progress }: SharedClaim, known?: SharedWrite): void {
    const keys = this.#keys;
    const write = this.#joinAgain(request, known);
    const { firstSentAt, isResponding, record } = progress;
    if (write.state === 'new' && write.sentCount === 0 && firstSentAt !== undefined) write.firstSentAt = firstSentAt;
    // The store has lost another request that was in progress.
    if (write.state === 'new' && record?.isAnswered === false) keys.record(write, record, request.identity.credential);
    const isFree = progress.state === 'held' && keys.claims.tryAcquire(write);
    const state = isResponding ? 'over' : isFree ? 'held' : 'shared';
    const claim = this.#makeClaim(request, { write, progress: { ...progress, state } });
    this.#claims.set(id, { owner, request, claim });
    keys.leave(write);
    this.hasChanged = true;
  }

  /** Removes a claim whose response has ended. */
  close(id: string): void {
    this.change(id, (claim) => (this.hasEndedResponse = claim.close() || this.hasEndedResponse));
    this.#claims.delete(id);
  }

  /** Whether the claim is known, or was until now. */
  has(id: string): boolean {
    return this.#claims.has(id);
  }

  /** What a claim knows; undefined if it is not there. */
  lookUp(id: string): KnownWrite | undefined {
    return this.#claims.get(id)?.claim.known;
  }

  /** What a claim knows before its next attempt: see `RegistryKeyClaim.freeEndpoint`. @param last of the attempt before */
  lookUpToSend(id: string, last: WriteOutcome | undefined): KnownWrite | undefined {
    const claim = this.#claims.get(id)?.claim;
    if (claim === undefined) return undefined;
    if (last !== undefined) claim.recordOutcome(last);
    const isTakenBack = claim.takeBack();
    this.hasChanged = claim.freeEndpoint() || isTakenBack || this.hasChanged;
    const { record, endpoint } = claim.known;
    if (!claim.hasLostKey || record === undefined) return { record, endpoint };
    return { record: { ...record, isInUse: true }, endpoint };
  }

  /** What a request would know that does not have the key. */
  lookUpFor(request: KeyClaimRequest): KeyRecord | undefined {
    const claim = this.#makeClaim({ ...request, concurrent: 'pass' }, undefined, false);
    claim.begin({ onClaimed: () => undefined, onClaimRefused: () => undefined }, 0);
    const { record } = claim.known;
    claim.release({ kind: 'other' });
    return record;
  }

  /** See `KeyRegistry.unresolvedOwner`. */
  get unresolvedOwner(): number | undefined {
    return this.#keys.unresolvedOwner(this.#name);
  }

  /** See `KeyRegistry.isUnresolved`. */
  isUnresolved(by: OwnerDigests | undefined): boolean {
    return this.#keys.isUnresolved(this.#name, by);
  }

  /** The writes that match, for an operator. */
  search(query: WriteSearchQuery): WriteMatches & { readonly total: number } {
    return searchAll(this.#keys, query).matches;
  }

  /** Forgets the only write with this id, unless a request uses it. */
  forget(id: string): WriteRemoval {
    const search = searchAll(this.#keys, { id, order: 'newest', limit: MAX_AMBIGUOUS });
    const only = onlyWriteOf(search.found, this.#keys);
    if (only.kind !== 'found') return only;
    const write = toWriteView(only.write, this.#keys);
    if (write.state === 'in_progress') return { kind: 'in_progress', write };
    this.#keys.forget(only.write);
    this.hasChanged = true;
    return { kind: 'forgotten', write };
  }

  /** What is to be stored; undefined if nothing is known any more. */
  get state(): NameState | undefined {
    const claims: SharedClaim[] = [];
    const writes = [...this.#keys.writesOf(this.#name)].toReversed();
    for (const [id, { owner, request, claim }] of this.#claims) {
      const { stored } = claim;
      if (stored === undefined) continue;
      // It was forgotten while a response to it was being sent.
      if (!writes.includes(stored.write)) continue;
      claims.push({ id, owner, write: writes.indexOf(stored.write), request, progress: stored.progress });
    }
    return writes.length === 0 ? undefined : { writes: writes.map(toShared), claims };
  }

  #joinAgain({ identity }: KeyClaimRequest, known: SharedWrite | undefined): KeyedWrite {
    const keys = this.#keys;
    if (known === undefined || known.state === 'new') return keys.join(identity, true);
    const [any] = keys.writesOf(this.#name);
    if (any === undefined) keys.leave(this.#restoreWrite(known));
    const write = keys.join(identity, true);
    // Without the lost record, another process took it for new.
    if (write.state === 'new') keys.leave(keys.restore(known, write));
    return write;
  }

  #restoreWrite(known: SharedWrite): KeyedWrite {
    const write = this.#keys.restore(known);
    write.wasDelivered = known.wasDelivered;
    return write;
  }

  #makeClaim(request: KeyClaimRequest, resumed?: StoredClaim, countsAsSent = true): RegistryKeyClaim {
    const options = { keys: this.#keys, clock: this.#clock, schedule: NO_TIMER, request, countsAsSent };
    return new RegistryKeyClaim(resumed === undefined ? options : { ...options, resumed });
  }
}

/** The owners of the claims. */
export function ownersOf(state: NameState | undefined): ReadonlySet<string> {
  return new Set(state?.claims.map(({ owner }) => owner));
}

function toShared(write: KeyedWrite): SharedWrite {
  const { state, firstSentAt, endpoint, finalFor, unresolvedFor, wasDelivered } = write;
  return { ...identityOf(write), state, firstSentAt, endpoint, finalFor, unresolvedFor, wasDelivered };
}
