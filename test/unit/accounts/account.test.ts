import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Account } from '../../../src/core/accounts/account.ts';
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import { AccountPool } from '../../../src/core/accounts/account-pool.ts';

const SETTINGS = { statuses: new Set([401]), after: 3, interval: 30_000, maxInterval: 600_000 };
const credential = (value: string): AccountCredential => new AccountCredential('Authorization', value);
const account = (): Account => new Account('main', credential('secret'));

test('is quarantined by the third rejection in a row', () => {
  const it = account();
  expect([it.onRejected(0, SETTINGS, 10), it.onRejected(0, SETTINGS, 20)]).toEqual([undefined, undefined]);
  expect(it.onAccepted(0)).toBeUndefined();
  expect([30, 40].map((now) => it.onRejected(0, SETTINGS, now))).toEqual([undefined, undefined]);
  expect(it.onRejected(0, SETTINGS, 50)).toBe('quarantined');
  expect([it.isQuarantined, it.probeAt, it.quarantinedSince]).toEqual([true, 30_050, 50]);
});

test('is probed at growing intervals, and returns with the first accepted probe', () => {
  const it = account();
  it.quarantine(SETTINGS, 0);
  const probes: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    const at = it.probeAt;
    probes.push(at);
    it.beginProbe(at);
    expect(it.onRejected(at, SETTINGS, at)).toBe('probe-failed');
  }
  expect(probes.map((at, i) => (at - (probes[i - 1] ?? 0)) / 1000)).toEqual([30, 60, 120, 240, 480, 600, 600]);
  it.beginProbe(it.probeAt);
  expect(it.onAccepted(it.quarantinedSince ?? 0)).toBeUndefined(); // it was sent before the quarantine
  expect(it.onAccepted(10_000_000)).toBe('returned');
  expect(it.isQuarantined).toBe(false);
});

test('allows one probe in an interval, even if its outcome is never known', () => {
  const it = account();
  it.quarantine(SETTINGS, 0);
  it.beginProbe(30_000);
  expect(it.probeAt).toBe(60_000);
});

test('does not count rejections of requests that were sent before the quarantine', () => {
  const it = account();
  it.quarantine(SETTINGS, 0);
  expect(it.onRejected(-10, SETTINGS, 40_000)).toBeUndefined();
  expect(it.probeAt).toBe(30_000);
});

test('returns to service when its credential changes, and only then', () => {
  const it = account();
  it.quarantine(SETTINGS, 0);
  expect(it.rotate(credential('secret'))).toBe(false);
  expect(it.isQuarantined).toBe(true);
  expect(it.rotate(credential('other'))).toBe(true);
  expect(it.isQuarantined).toBe(false);
});

test('keeps what a pool knows of an account through a reload, by name', () => {
  const pool = new AccountPool({ accounts: [{ name: 'a', credential: credential('1') }], quarantine: SETTINGS });
  const [first] = pool.accounts;
  first?.quarantine(SETTINGS, 0);
  const accounts = ['b', 'a'].map((name) => ({ name, credential: credential('1') }));
  pool.reconfigure({ accounts, quarantine: SETTINGS });
  expect(pool.accounts.map(({ name, isQuarantined }) => [name, isQuarantined])).toEqual([
    ['b', false],
    ['a', true],
  ]);
  expect(pool.find('a')).toBe(first);
});

test('shows its credential only to the headers that it is written to', () => {
  const it = account();
  expect(inspect(it, { depth: 9, showHidden: true })).not.toContain('secret');
  expect(JSON.stringify([it, it.credential])).not.toContain('secret');
  const headers: string[] = [];
  it.credential.appendTo(headers);
  expect(headers).toEqual(['Authorization', 'secret']);
});
