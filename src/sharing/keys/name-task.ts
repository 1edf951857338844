import { newClaimProgress } from '../../core/idempotency/claim-progress.ts';
import type { KeyClaimChange, KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { NameSession, SharedClaim } from '../../core/idempotency/name-session.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { KeyOperation } from './key-protocol.ts';
import type { PendingClaim } from './pending-claims.ts';

/** What is done with the state of a name. */
export type NameTask =
  | { readonly kind: 'claim'; readonly pending: PendingClaim }
  /** `request`: of the claim; undefined if nothing is sent with it. */
  | {
      readonly kind: 'change';
      readonly operation: Extract<KeyOperation, KeyClaimChange>;
      readonly request: KeyClaimRequest | undefined;
    }
  | { readonly kind: 'close'; readonly number: number }
  | {
      readonly kind: 'look';
      readonly number: number;
      readonly request: KeyClaimRequest;
      readonly last: WriteOutcome | undefined;
    }
  /** Another process has changed it. */
  | { readonly kind: 'refresh' }
  /** The store has lost the claims of this process. */
  | { readonly kind: 'restore' };

type ChangeTask = Extract<NameTask, { readonly kind: 'change' }>;

/** Releases a key that may have been granted, and that nothing was sent with. */
export function undo(claim: number): readonly NameTask[] {
  const operation = { do: 'release', claim, end: { kind: 'other' }, last: undefined } as const;
  return [
    { kind: 'change', operation, request: undefined },
    { kind: 'close', number: claim },
  ];
}

/** Whether these tasks have changed the record of the response, which other requests with the key depend on. */
export function isNewsOf(tasks: readonly NameTask[], { hasEndedResponse }: NameSession): boolean {
  return hasEndedResponse || tasks.some((task) => task.kind === 'change' && task.operation.do === 'undelivered');
}

/** The claim that ends with it, or of which only a response goes on; undefined if none. */
export function endOf(task: NameTask): number | undefined {
  if (task.kind === 'close') return task.number;
  return task.kind === 'change' && task.operation.do === 'release' ? task.operation.claim : undefined;
}

/** The write is sent although nothing is known of its claim: an operator has forgotten it. So it counts as claimed now. */
export function claimOfSend(id: string, owner: string, { operation, request }: ChangeTask): SharedClaim | undefined {
  if (operation.do !== 'send' || request === undefined) return undefined;
  return { id, owner, write: 0, request, progress: { ...newClaimProgress(), firstSentAt: operation.at } };
}
