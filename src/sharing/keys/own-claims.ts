import type { KnownWrite } from '../../core/idempotency/key-record.ts';
import type { NameSession, NameState, SharedClaim, SharedWrite } from '../../core/idempotency/name-session.ts';
import type { Millis } from '../../core/scalars.ts';
import type { NameTask } from './name-task.ts';
import { endOf } from './name-task.ts';

/** A claim of this process to a name, and its write, as they were last stored. */
export interface OwnClaim {
  readonly claim: SharedClaim;
  readonly write: SharedWrite | undefined;
}

/** The claims of this process to one name that were granted, until their end is stored. */
export class OwnClaims {
  readonly owner: string;
  readonly #notifyForgotten: () => void;
  readonly #granted = new Set<number>();
  /** Until they end: others may have removed them, or the store has lost them. */
  #stored: ReadonlyMap<string, OwnClaim> = new Map();

  /** @param owner this process @param notifyForgotten called whenever an operator has forgotten a write */
  constructor(owner: string, notifyForgotten: () => void) {
    this.owner = owner;
    this.#notifyForgotten = notifyForgotten;
  }

  get size(): number {
    return this.#stored.size;
  }

  get stored(): ReadonlyMap<string, OwnClaim> {
    return this.#stored;
  }

  get(number: number): OwnClaim | undefined {
    return this.#stored.get(this.idOf(number));
  }

  idOf(number: number): string {
    return `${this.owner}/${number}`;
  }

  /** It has the key, or may have it. */
  onGranted(number: number): void {
    this.#granted.add(number);
  }

  /**
   * The result of these tasks is stored: the state, or what they left of it.
   * @param isKnown whether a claim was known to the state; if it was not, others have removed it, or the store has lost it
   */
  onStored(state: NameState | undefined, tasks: Iterable<NameTask>, isKnown: (id: string) => boolean): void {
    const ended = new Set<string>();
    for (const task of tasks) {
      const number = endOf(task);
      if (number !== undefined) ended.add(this.idOf(number));
      if (task.kind === 'close') this.#granted.delete(task.number);
    }
    const lost = [...this.#stored].filter(([id]) => !isKnown(id) && !ended.has(id));
    this.#stored = new Map([...lost, ...this.#grantedIn(state)]);
  }

  /** An operator has forgotten a write: the results of claims from before would bring it back. */
  onForgotten(state: NameState | undefined): void {
    this.#stored = this.#grantedIn(state);
    this.#notifyForgotten();
  }

  /**
   * Brings a claim back that others have presumed ended, or that the store has lost: what it did, and does, counts nevertheless.
   * @param sent the claim if it sends its write now, and is not known
   */
  restore(session: NameSession, number: number, sent?: SharedClaim): void {
    if (session.has(this.idOf(number))) return;
    const own = this.get(number);
    if (own !== undefined) session.restore(own.claim, own.write);
    else if (sent !== undefined) session.restore(sent);
  }

  /** Brings all claims back. @returns those that were missing */
  restoreAll(session: NameSession): readonly number[] {
    const missing = [...this.#stored.keys()].filter((id) => !session.has(id)).map(numberOf);
    for (const number of missing) this.restore(session, number);
    return missing;
  }

  /**
   * Whether nobody works on a claim any more. A claim of this process that it does not know has come back with older data of the
   * store, or in a message that arrived late.
   */
  isOver(owner: string, id: string, gone: ReadonlySet<string>, isPending: (number: number) => boolean): boolean {
    if (owner !== this.owner) return gone.has(owner);
    const number = numberOf(id);
    return !this.#granted.has(number) && !isPending(number);
  }

  #grantedIn(state: NameState | undefined): ReadonlyMap<string, OwnClaim> {
    const own = (state?.claims ?? []).filter(
      ({ owner, id }) => owner === this.owner && this.#granted.has(numberOf(id)),
    );
    return new Map(own.map((claim) => [claim.id, { claim, write: state?.writes[claim.write] }]));
  }
}

export function numberOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('/') + 1));
}

/** What a claim of this process has to take for true if nobody knows what others have done. */
export function unresolvedBy(own: OwnClaim | undefined, now: Millis): KnownWrite {
  const progress = own?.claim.progress;
  const firstSentAt = progress?.record?.firstSentAt ?? progress?.firstSentAt ?? now;
  return { record: { firstSentAt, isAnswered: false }, endpoint: own?.write?.endpoint };
}
