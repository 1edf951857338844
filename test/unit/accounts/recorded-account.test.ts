import { expect, test } from 'vitest';
import { formatKeyPlace } from '../../../src/core/idempotency/key-place.ts';
import type { IdempotencyKey } from '../../../src/http/idempotency/idempotency-types.ts';
import { EndpointSelector } from '../../../src/http/upstream/endpoint-selector.ts';

type Routed = ConstructorParameters<typeof EndpointSelector>[0];
type Owner = ConstructorParameters<typeof EndpointSelector>[1];

/** Chooses the endpoint `ep` of an upstream. @param account of the ticket @param accounts of the upstream */
function choose(
  account: string | undefined,
  accounts: readonly string[] | undefined,
  recordedPlace?: string,
  key?: IdempotencyKey,
) {
  const endpoint = { label: 'ep', index: 0 };
  const endpoints = { choose: () => endpoint, findByLabel: () => endpoint };
  const target = { endpoints, accounts: accounts && { names: accounts }, idempotency: {} };
  const routed = { route: { target }, isPreflight: false } as unknown as Routed;
  const ticket = { account: account === undefined ? undefined : { name: account } };
  const selector = new EndpointSelector(routed, { driver: { ticket } } as unknown as Owner);
  const chosen = selector.choose({ key, pinnedTo: undefined, claim: { endpoint: recordedPlace } }, false, 0);
  return chosen === undefined ? selector.missing.cause : selector.place;
}

test.each([
  ['another account', 'a@ep'],
  ['another account, without a known endpoint', 'a@'],
  ['no account', 'ep'],
])('does not send a write with an account if it is recorded with %s since the account was chosen', (_, place) => {
  expect(choose('c', ['a', 'b', 'c'], place)).toBe('ACCOUNT_REMOVED');
});

test.each([undefined, '', 'c@ep'])('sends a write with its account if the recorded place is %j', (place) => {
  expect(choose('c', ['a', 'b', 'c'], place)).toBe('c@ep');
});

test('sends a write without accounts only if none is recorded with it', () => {
  expect(choose(undefined, undefined, 'ep')).toBe('ep');
  expect(choose(undefined, undefined, 'a@ep')).toBe('ACCOUNT_REMOVED');
});

test('does not send a request without an account to an upstream with accounts', () => {
  expect(choose(undefined, ['a'])).toBe('ACCOUNT_REMOVED');
});

test('sends a write with its key in the body only if no derived key is recorded with it', () => {
  const key = { value: 'order-1', from: 'body' } as const;
  expect(choose('a', ['a'], 'a@ep', key)).toBe('a@ep');
  const place = formatKeyPlace({ label: 'ep', account: 'a', upstreamKey: '00000000-0000-8000-8000-000000000000' });
  expect(choose('a', ['a'], place, key)).toBe('ENDPOINT_REMOVED');
  expect(choose('a', ['a'], place, { ...key, from: 'header' })).toBe(place);
});
