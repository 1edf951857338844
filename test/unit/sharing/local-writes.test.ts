/** What a process knows itself of writes whose clients have names of different kinds: a replica may name clients in another way. */
import { describe, expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaim, KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';
import { LocalWrites } from '../../../src/sharing/keys/local-writes.ts';

const NOBODY = { onClaimed: () => undefined, onClaimRefused: () => undefined };

/** @param owner of the key, and the kind of its name */
function requestOf(owner: number, name = 'order'): KeyClaimRequest {
  return {
    identity: {
      ...{ upstream: 'up', name, credential: -owner, owner: 1, credentialHeader: 'authorization', body: 7 },
      ...{ keyOwner: owner, keyOwnerKind: owner },
    },
    place: { fairnessKey: 'a', client: 'a' },
    concurrent: 'wait',
    ttl: 60_000,
    endpoint: undefined,
    onStoreLost: 'local',
  };
}

function send(claim: KeyClaim, endpoint: string, isAnswered: boolean): void {
  claim.onSend(endpoint);
  claim.recordOutcome(isAnswered ? 'answered' : 'may_have_taken_effect');
  claim.release(isAnswered ? { kind: 'answered', isFinal: true, isDelivered: true } : { kind: 'unknown' });
  claim.close();
}

/** Alice has an unresolved write here, which the shared store does not know: it grants the key to another one. */
function start() {
  const keys = new KeyRegistry();
  const store = new RegistryKeyStore(keys, { now: () => 0 }, () => () => undefined);
  const local = new LocalWrites(store, () => undefined);
  const alice = store.makeClaim(requestOf(1));
  alice.begin(NOBODY, 100);
  send(alice, 'of-alice', false);
  const writes = () => [...keys.writesOf('order')].map(({ keyOwner, state, endpoint }) => [keyOwner, state, endpoint]);
  return { keys, store, local, writes };
}

describe('a write that may repeat one that only this process knows', () => {
  test.each([
    ['knows nothing of it', undefined],
    ['knows it', { firstSentAt: -5, isAnswered: true }],
  ])('is remembered beside it if the shared store %s', (_, record) => {
    const { local, writes, store } = start();
    const copy = local.copy(requestOf(2), record, record && 'of-bob');
    expect(copy.hasWrite).toBe(true);
    send(copy, 'of-bob', true);
    expect(writes()).toEqual([
      [2, 'answered', 'of-bob'],
      [1, 'unresolved', 'of-alice'],
    ]);
    const repeat = store.makeClaim(requestOf(1));
    repeat.begin(NOBODY, 100);
    expect([repeat.hasWrite, repeat.endpoint]).toEqual([true, 'of-alice']);
  });

  test('leaves nothing behind if it is not sent', () => {
    const { local, writes } = start();
    local.copy(requestOf(2), undefined, undefined).release({ kind: 'other' });
    expect(writes()).toEqual([[1, 'unresolved', 'of-alice']]);
  });

  test('does not settle it by what the shared store knows', () => {
    const { local, writes } = start();
    local.learn(requestOf(2), { firstSentAt: -5, isAnswered: true }, 'of-bob');
    expect(writes()).toEqual([[1, 'unresolved', 'of-alice']]);
  });
});

test('keeps at most a thousand answered writes of one key for what the shared store has granted', () => {
  const { keys, local } = start();
  for (let owner = 2; owner < 1500; owner += 1) {
    const copy = local.copy(requestOf(owner), undefined, undefined);
    send(copy, 'e1', true);
  }
  expect([...keys.writesOf('order')].length).toBeLessThanOrEqual(1000);
});
