/** What a request learns when its claim to a key is refused. */
import { expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';

function startStore() {
  const store = new RegistryKeyStore(new KeyRegistry(), { now: () => 0 }, () => () => undefined);
  /** Claims the key with a credential; `refusals` gets what the request learns if it is refused. */
  const claim = (credential: number) => {
    const request: KeyClaimRequest = {
      identity: { upstream: 'up', name: 'order', credential, owner: 1, credentialHeader: 'authorization', body: 1 },
      place: { fairnessKey: 'a', client: 'a' },
      concurrent: 'refuse',
      ttl: 60_000,
      ...{ endpoint: 'e1', onStoreLost: 'refuse' },
    };
    const claimed = store.makeClaim(request);
    const refusals: unknown[] = [];
    const onClaimRefused = (...refusal: unknown[]): void => void refusals.push(refusal);
    claimed.begin({ onClaimed: () => undefined, onClaimRefused }, 100);
    return { claimed, refusals };
  };
  /** Sends the write with a credential. @param isAnswered false: without a response */
  const send = (credential: number, isAnswered: boolean): void => {
    const { claimed } = claim(credential);
    claimed.onSend('e1');
    claimed.recordOutcome(isAnswered ? 'answered' : 'may_have_taken_effect');
    claimed.release(isAnswered ? { kind: 'answered', isFinal: true, isDelivered: true } : { kind: 'unknown' });
    claimed.close();
  };
  return { claim, send };
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
