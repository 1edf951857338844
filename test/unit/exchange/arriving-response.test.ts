/** A response that is being sent: until a client has all of one, refusals of other requests do not deny the write. */
import { expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { isUnconfirmed } from '../../../src/core/idempotency/key-record.ts';
import { isAnsweredFor } from '../../../src/core/idempotency/keyed-write.ts';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';

const request: KeyClaimRequest = {
  identity: { upstream: 'up', name: 'order', credential: 1, owner: 1, credentialHeader: 'authorization', body: 1 },
  place: { fairnessKey: 'a', client: 'a' },
  concurrent: 'wait',
  ttl: 60_000,
  ...{ endpoint: 'e1', onStoreLost: 'refuse' },
};

function startStore() {
  const store = new RegistryKeyStore(new KeyRegistry(), { now: () => 0 }, () => () => undefined);
  const claim = () => {
    const claimed = store.makeClaim(request);
    const granted: unknown[] = [];
    const onClaimed = (record: unknown): void => void granted.push(record);
    claimed.begin({ onClaimed, onClaimRefused: () => undefined }, 100);
    return { claimed, granted };
  };
  /** Claims the key, and sends the head of a response. @param isFinal false: a decline */
  const respond = (isFinal = true) => {
    const { claimed } = claim();
    claimed.onSend('e1');
    claimed.recordOutcome('answered');
    claimed.release({ kind: 'answered', isFinal, isDelivered: true });
    return claimed;
  };
  const isOpen = (): boolean[] => {
    const found: boolean[] = [store.mayHaveUnresolved(), store.mayHaveUnresolved('up')];
    for (const names of [['order'], undefined]) store.findUnresolved('up', names, (each) => found.push(each));
    return found;
  };
  return { store, claim, respond, isOpen };
}

const ANSWERED = { firstSentAt: 0, isAnswered: true, isFinal: true };

test('a write is open for requests without its key until the first response has ended', () => {
  const { respond, isOpen } = startStore();
  const first = respond();
  expect(isOpen()).toEqual([true, true, true, true]);
  first.close();
  expect(isOpen()).toEqual([false, false, false, false]);
});

test('a request that has the key knows that the response arrives, and that it has arrived', () => {
  const { claim, respond } = startStore();
  const first = respond();
  const { claimed, granted } = claim();
  const known: unknown[] = [];
  first.close();
  claimed.lookUp((record) => known.push(record));
  expect([...granted, ...known]).toEqual([{ ...ANSWERED, isArriving: true }, ANSWERED]);
});

test('a write whose response breaks off is unresolved, and no response to it arrives', () => {
  const { claim, respond, isOpen } = startStore();
  const first = respond();
  first.onUndelivered();
  first.close();
  expect(isOpen()).toEqual([true, true, true, true]);
  expect(claim().granted).toEqual([{ firstSentAt: 0, isAnswered: false }]);
});

test('a second response changes nothing once a client has a whole one', () => {
  const { claim, respond, isOpen } = startStore();
  respond().close();
  const second = respond();
  expect(isOpen()).toEqual([false, false, false, false]);
  expect(claim().granted).toEqual([ANSWERED]);
  second.onUndelivered();
  second.close();
  expect(isOpen()).toEqual([false, false, false, false]);
});

test.each([
  ['nothing', undefined, false],
  ['an unresolved write', { firstSentAt: 0, isAnswered: false }, true],
  ['a write whose response arrives', { ...ANSWERED, isArriving: true }, true],
  ['an answered write', ANSWERED, false],
])('%s is unconfirmed: %s', (_, record, isOpen) => {
  expect(isUnconfirmed(record)).toBe(isOpen);
});

test('after a decline that its client received, the response to a later attempt counts until a client has it whole', () => {
  const { claim, respond, isOpen } = startStore();
  respond(false).close();
  expect(isOpen()).toEqual([false, false, false, false]);
  const paid = respond();
  expect(isOpen()).toEqual([true, true, true, true]);
  expect(claim().granted).toEqual([{ ...ANSWERED, isArriving: true }]);
  paid.close();
  expect(isOpen()).toEqual([false, false, false, false]);
});

test('a second decline changes nothing', () => {
  const { respond, isOpen } = startStore();
  respond(false).close();
  respond(false);
  expect(isOpen()).toEqual([false, false, false, false]);
});

test('a response that breaks off after its write was forgotten leaves the write of another client as it is', () => {
  const keys = new KeyRegistry();
  const store = new RegistryKeyStore(keys, { now: () => 0 }, () => () => undefined);
  const claimOf = (owner: number) => {
    const identity = { ...request.identity, credential: -owner, keyOwner: owner, keyOwnerKind: owner };
    const claim = store.makeClaim({ ...request, identity });
    claim.begin({ onClaimed: () => undefined, onClaimRefused: () => undefined }, 100);
    claim.onSend('e1');
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    return claim;
  };
  const alice = claimOf(1);
  for (const write of [...keys.writesOf('order')]) keys.forget(write);
  claimOf(2).close();
  alice.onUndelivered();
  alice.close();
  const open = [...keys.writesOf('order')].map(
    (write) => [write.keyOwner, !isAnsweredFor(write, write.credential)] as const,
  );
  expect(open.toSorted(([a = 0], [b = 0]) => a - b)).toEqual([
    [1, true],
    [2, false],
  ]);
});
