import { expect, test } from 'vitest';
import { formatKeyPlace, parseKeyPlace } from '../../../src/core/idempotency/key-place.ts';
import { pinnedAccountOf, rendezvous } from '../../../src/http/idempotency/pinned-account.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const KEYS = Array.from({ length: 5000 }, (_, i) => `key-${i}`);

test('spreads keys evenly, and moves only the keys of an account that is removed', () => {
  const counts = new Map<string | undefined, number>();
  for (const key of KEYS) {
    const account = rendezvous(NAMES, key);
    counts.set(account, (counts.get(account) ?? 0) + 1);
    const rest = NAMES.filter((name) => name !== 'c');
    if (account !== 'c') expect(rendezvous(rest, key)).toBe(account);
  }
  for (const name of NAMES) expect(Math.abs((counts.get(name) ?? 0) - 1000)).toBeLessThan(120);
});

test('does not depend on the order of the accounts', () => {
  for (const key of KEYS.slice(0, 100)) expect(rendezvous(NAMES.toReversed(), key)).toBe(rendezvous(NAMES, key));
});

test.each(['api.example.com', '[::1]:8080', ''])(
  'records the account and the derived key with the endpoint %j',
  (label) => {
    for (const account of [undefined, 'main']) {
      const place = { label, account };
      expect(parseKeyPlace(formatKeyPlace(place))).toEqual(place);
    }
    for (const account of [undefined, 'main']) {
      const place = { label, account, upstreamKey: '00000000-0000-8000-8000-000000000000' };
      expect(parseKeyPlace(formatKeyPlace(place))).toEqual(place);
    }
    expect(formatKeyPlace({ label, account: 'main' })).toBe(`main@${label}`);
  },
);

type Routed = Parameters<typeof pinnedAccountOf>[0];

function routed(
  names: readonly string[] | undefined,
  stickyAccount = false,
  rawHeaders: readonly string[] = [],
  verb = 'POST',
  delivery?: string,
): Routed {
  const accounts = names && { names, headers: new Set(['authorization']) };
  const idempotency = { header: { name: 'Idempotency-Key', lower: 'idempotency-key' } };
  const request = { verb, rawHeaders, delivery };
  return {
    request,
    route: { stickyAccount, target: { accounts, idempotency } },
    client: { hash: 'hash' },
  } as unknown as Routed;
}

test('prefers the recorded account of a key, even one that is no longer configured', () => {
  const key = { value: 'key', from: 'header' } as const;
  expect(pinnedAccountOf(routed(NAMES), key, { endpoint: 'gone@api' })).toBe('gone');
  expect(pinnedAccountOf(routed(NAMES), key, { endpoint: '' })).toBe(rendezvous(NAMES, 'key'));
  expect(pinnedAccountOf(routed(NAMES), key, undefined)).toBe(rendezvous(NAMES, 'key'));
});

test('sends a write that is recorded without an account with none of the accounts', () => {
  expect(NAMES).not.toContain(
    pinnedAccountOf(routed(NAMES), { value: 'key', from: 'header' }, { endpoint: 'api' }) ?? NAMES[0],
  );
});

test.each([
  ['repeated', ['Idempotency-Key', 'one', 'Idempotency-Key', 'two'], 'one, two'],
  ['written with an underscore', ['Idempotency_Key', 'one'], 'one'],
])('sends all repeats of a write whose key header is %s with one account', (_, headers, text) => {
  expect(pinnedAccountOf(routed(NAMES, false, headers), undefined, undefined)).toBe(rendezvous(NAMES, text));
  expect(pinnedAccountOf(routed(NAMES, false, headers, 'GET'), undefined, undefined)).toBeUndefined();
});

test('sends all attempts of a delivery without a key with one account, even if the route is sticky', () => {
  const delivered = (stickyAccount: boolean, rawHeaders: readonly string[] = []): Routed =>
    routed(NAMES, stickyAccount, rawHeaders, 'POST', 'message-4');
  const account = rendezvous(NAMES, 'message-4');
  expect(account).not.toBe(rendezvous(NAMES, 'hash'));
  expect(pinnedAccountOf(delivered(false), undefined, undefined)).toBe(account);
  expect(pinnedAccountOf(delivered(true), undefined, undefined)).toBe(account);
  expect(pinnedAccountOf(delivered(false), { value: 'key', from: 'header' }, undefined)).toBe(rendezvous(NAMES, 'key'));
  const ambiguous = delivered(false, ['Idempotency_Key', 'one']);
  expect(pinnedAccountOf(ambiguous, undefined, undefined)).toBe(rendezvous(NAMES, 'one'));
});

test('pins other requests only by client, and none without accounts', () => {
  expect(pinnedAccountOf(routed(NAMES), undefined, undefined)).toBeUndefined();
  expect(pinnedAccountOf(routed(NAMES, true), undefined, undefined)).toBe(rendezvous(NAMES, 'hash'));
  expect(pinnedAccountOf(routed(undefined, true), { value: 'key', from: 'header' }, undefined)).toBeUndefined();
});
