import { expect, test } from 'vitest';
import { type AccountCandidate, chooseAccount, waitOf } from '../../../src/core/accounts/choose-account.ts';

const NOW = 1000;

function candidate(name: string, parts: Partial<AccountCandidate> = {}): AccountCandidate & { readonly name: string } {
  return {
    name,
    wait: 0,
    probeAt: Number.NEGATIVE_INFINITY,
    trialAt: undefined,
    hasRejected: false,
    hasThrottled: false,
    inFlight: 0,
    lastUse: 0,
    ...parts,
  };
}

test.each([
  ['the shortest wait', { wait: 20 }, { wait: 10, inFlight: 9, lastUse: 9 }],
  ['an account that has not just throttled this request', { hasThrottled: true }, { inFlight: 3 }],
  ['the fewest requests in flight at the same wait', { inFlight: 2, lastUse: 1 }, { inFlight: 1, lastUse: 9 }],
  ['the least recently used of equals', { lastUse: 2 }, { lastUse: 1 }],
  ['an account in service, before one in quarantine', { probeAt: NOW + 1 }, { wait: 60_000 }],
  ['an account whose probe is due, before one in service', {}, { probeAt: NOW }],
  ['an account in service, before a due probe that would wait', { probeAt: NOW, wait: 1 }, { wait: 60_000 }],
  ['an account in service, before one that excludes others', { trialAt: NOW + 1 }, { wait: 60_000 }],
  ['an account that excludes others, once its trial is due', {}, { trialAt: NOW }],
  ['an account that excludes others, before one that excludes this client', { probeAt: NOW + 1 }, { trialAt: NOW + 9 }],
  ['the earlier probe, if all are in quarantine', { probeAt: NOW + 20 }, { probeAt: NOW + 10 }],
  ['an account that has not rejected this request', { hasRejected: true }, { probeAt: NOW + 10 }],
])('chooses %s', (_, one, other) => {
  expect(chooseAccount([candidate('one', one), candidate('other', other)], NOW)?.name).toBe('other');
  expect(chooseAccount([candidate('other', other), candidate('one', one)], NOW)?.name).toBe('other');
});

test('chooses the first of equals, and none of none', () => {
  expect(chooseAccount([candidate('a'), candidate('b')], NOW)?.name).toBe('a');
  expect(chooseAccount([], NOW)).toBeUndefined();
});

test('waits for a token or for the next probe, whichever is later', () => {
  expect(waitOf(candidate('a', { wait: 5 }), NOW)).toBe(5);
  expect(waitOf(candidate('a', { wait: 5, probeAt: NOW + 7 }), NOW)).toBe(7);
  expect(waitOf(candidate('a', { probeAt: NOW - 7 }), NOW)).toBe(0);
});
