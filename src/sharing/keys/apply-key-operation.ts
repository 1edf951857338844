import type { RegistryKeyClaim } from '../../core/idempotency/registry-key-claim.ts';
import type { KeyOperation } from './key-protocol.ts';

/** An operation that changes a claim. */
export type ClaimChange = Extract<KeyOperation, { readonly do: 'send' | 'release' | 'undelivered' }>;

export function applyToClaim(claim: RegistryKeyClaim, operation: ClaimChange): void {
  if (operation.do === 'undelivered') return claim.onUndelivered();
  if (operation.last !== undefined) claim.recordOutcome(operation.last);
  if (operation.do === 'send') claim.onSend(operation.endpoint, operation.at);
  else claim.release(operation.end);
}
