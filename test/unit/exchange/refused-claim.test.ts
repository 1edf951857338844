/** What a request learns when its claim to a key is refused. */
import { describe, expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';

function startStore() {
  const clock = { time: 0, now: () => clock.time };
  const store = new RegistryKeyStore(new KeyRegistry(), clock, () => () => undefined);
  /** Claims the key with a credential; `refusals` gets what the request learns if it is refused. */
  const claim = (credential: number, keyOwner?: number, ttl: number | undefined = 60_000) => {
    const identity = {
      upstream: 'up',
      name: 'order',
      credential,
      owner: 1,
      credentialHeader: 'authorization',
      body: 1,
    };
    const request: KeyClaimRequest = {
      identity: { ...identity, keyOwner },
      place: { fairnessKey: 'a', client: 'a' },
      concurrent: 'refuse',
      ttl: ttl === 0 ? undefined : ttl,
      ...{ endpoint: 'e1', onStoreLost: 'refuse' },
    };
    const claimed = store.makeClaim(request);
    const refusals: unknown[] = [];
    const onClaimRefused = (...refusal: unknown[]): void => void refusals.push(refusal);
    claimed.begin({ onClaimed: () => undefined, onClaimRefused }, 100);
    return { claimed, refusals };
  };
  /** Sends the write with a credential. @param isAnswered false: without a response */
  const send = (credential: number, isAnswered: boolean, keyOwner?: number): void => {
    const { claimed } = claim(credential, keyOwner);
    claimed.onSend('e1');
    claimed.recordOutcome(isAnswered ? 'answered' : 'may_have_taken_effect');
    claimed.release(isAnswered ? { kind: 'answered', isFinal: true, isDelivered: true } : { kind: 'unknown' });
    claimed.close();
  };
  return { claim, send, clock };
}

test('its write is open while the first request has no response', () => {
  const { claim } = startStore();
  claim(1).claimed.onSend('e1');
  expect(claim(1).refusals).toEqual([['key_in_use', true]]);
});

test('its write is not open if its client has a response, although one with another credential has none', () => {
  const { claim, send } = startStore();
  send(1, true);
  send(2, false);
  claim(1);
  expect(claim(1).refusals).toEqual([['key_in_use', false]]);
  expect(claim(2).refusals).toEqual([['key_in_use', true]]);
});

test('its write is open if a client with another credential has the response, and its own may be another write', () => {
  const { claim, send } = startStore();
  send(1, true);
  claim(2).claimed.onSend('e1');
  expect(claim(2).refusals).toEqual([['key_in_use', true]]);
});

describe('a request that may repeat a write from before its client had keys of its own', () => {
  test.each([
    ['an unknown outcome', false, true],
    ['a plain refusal, if that write was answered', true, false],
  ])('has %s', (_, isAnswered, isOpen) => {
    const { claim, send } = startStore();
    send(1, isAnswered);
    expect(claim(-7, 7).refusals).toEqual([['key_ambiguous', isOpen]]);
    expect(claim(1).refusals).toEqual([]);
  });

  test('has an unknown outcome while that write is in progress', () => {
    const { claim } = startStore();
    claim(1).claimed.onSend('e1');
    expect(claim(-7, 7).refusals).toEqual([['key_ambiguous', true]]);
  });

  test('finds the key in use while that write is in progress and was not sent, so that it is repeated', () => {
    const { claim } = startStore();
    claim(1);
    expect(claim(-7, 7).refusals).toEqual([['key_in_use', false]]);
  });

  test('has the key if its credential is that of the write, also in the other direction', () => {
    const { claim, send } = startStore();
    send(-7, false);
    const { claimed, refusals } = claim(-7, 7);
    expect([refusals, claimed.endpoint]).toEqual([[], 'e1']);
    const other = startStore();
    other.send(-7, false, 7);
    expect(other.claim(-7).refusals).toEqual([]);
  });

  test('has the key once that write is so old that it is forgotten', () => {
    const { claim, send, clock } = startStore();
    send(1, false);
    clock.time = 24 * 60 * 60 * 1000;
    expect(claim(-7, 7, 0).refusals).toHaveLength(1);
    clock.time += 1;
    const { claimed, refusals } = claim(-7, 7, 0);
    expect(refusals).toEqual([]);
    claimed.onSend('e1');
    expect(claim(-8, 8, 0).refusals).toEqual([]); // a new write of the client alone
  });
});

test('a client with keys of its own is refused if too many others use the same key', () => {
  const { claim } = startStore();
  for (let n = 1; n <= 1000; n += 1) claim(-n, n);
  expect(claim(-1001, 1001).refusals).toEqual([['key_overused', false]]);
});
