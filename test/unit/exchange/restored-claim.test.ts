/** A claim that others have presumed abandoned, and that is brought back, where clients have names of different kinds. */
import { expect, test } from 'vitest';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { NameSession } from '../../../src/core/idempotency/name-session.ts';

/** @param owner of the key, and the kind of its name */
function requestOf(owner: number): KeyClaimRequest {
  return {
    identity: {
      ...{ upstream: 'up', name: 'order', credential: -owner, owner: 1, credentialHeader: 'authorization', body: 7 },
      ...{ keyOwner: owner, keyOwnerKind: owner },
    },
    place: { fairnessKey: 'a', client: 'a' },
    concurrent: 'wait',
    ttl: 60_000,
    ...{ endpoint: undefined, onStoreLost: 'refuse' },
  };
}

test('does not settle the write of another client that was made meanwhile', () => {
  const clock = { now: () => 0 };
  const before = new NameSession('order', undefined, clock);
  before.claim('bob 1', 'one', requestOf(2));
  before.change('bob 1', (claim) => claim.onSend('of-bob'));
  const lost = before.state?.claims[0];
  if (lost === undefined) throw new Error('no claim');
  const session = new NameSession('order', undefined, clock); // the store has lost it
  session.claim('alice 1', 'other', requestOf(1));
  session.change('alice 1', (claim) => {
    claim.onSend('of-alice');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'unknown' });
  });
  session.close('alice 1');
  session.restore(lost);
  session.change('bob 1', (claim) => {
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
  });
  session.close('bob 1');
  expect(session.state?.writes.map(({ keyOwner, state }) => [keyOwner, state])).toEqual([
    [1, 'unresolved'],
    [2, 'answered'],
  ]);
});
