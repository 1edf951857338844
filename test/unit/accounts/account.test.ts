import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Account } from '../../../src/core/accounts/account.ts';
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import { AccountPool } from '../../../src/core/accounts/account-pool.ts';

const SETTINGS = { statuses: new Set([401]), after: 3, interval: 30_000, maxInterval: 600_000 };
const credential = (value: string): AccountCredential => new AccountCredential('Authorization', value);
const ONE = { client: 'one', fairnessKey: 'one' };
const OTHER = { client: 'other', fairnessKey: 'other' };
const account = (): Account => new Account('main', credential('secret'));

test('is quarantined by the third rejection in a row', () => {
  const it = account();
  expect([it.onRejected(ONE, 0, SETTINGS, 10), it.onRejected(ONE, 0, SETTINGS, 20)]).toEqual([undefined, undefined]);
  expect(it.onAccepted(0)).toBeUndefined();
  expect([30, 40].map((now) => it.onRejected(ONE, 0, SETTINGS, now))).toEqual([undefined, undefined]);
  expect(it.onRejected(ONE, 0, SETTINGS, 50)).toBe('quarantined');
  expect([it.isQuarantined, it.probeAt, it.quarantinedSince]).toEqual([true, 30_050, 50]);
});

test('does not count rejections of requests that were sent before an accepted one', () => {
  const it = account();
  it.onAccepted(5);
  for (let i = 0; i < 5; i += 1) expect(it.onRejected(ONE, 4, SETTINGS, 10 + i)).toBeUndefined();
  expect(it.isQuarantined).toBe(false);
});

test('counts rejections of requests that were sent after one whose acceptance arrives late', () => {
  const it = account();
  for (const sentAt of [10, 11]) it.onRejected(ONE, sentAt, SETTINGS, 20);
  it.onAccepted(5);
  expect(it.onRejected(ONE, 12, SETTINGS, 21)).toBe('quarantined');
});

test('is probed at growing intervals, and returns with the first accepted probe', () => {
  const it = account();
  it.onProvenInvalid(ONE, 0, SETTINGS, 0);
  const probes: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    const at = it.probeAt;
    probes.push(at);
    it.beginUse('probe', at);
    expect(it.onRejected(ONE, at, SETTINGS, at)).toBe('probe-failed');
  }
  expect(probes.map((at, i) => (at - (probes[i - 1] ?? 0)) / 1000)).toEqual([30, 60, 120, 240, 480, 600, 600]);
  it.beginUse('probe', it.probeAt);
  expect(it.onAccepted(it.quarantinedSince ?? 0)).toBeUndefined(); // it was sent before the quarantine
  expect(it.onAccepted(10_000_000)).toBe('returned');
  expect(it.isQuarantined).toBe(false);
});

test('allows one probe in an interval, even if its outcome is never known', () => {
  const it = account();
  it.onProvenInvalid(ONE, 0, SETTINGS, 0);
  it.beginUse('probe', 30_000);
  expect(it.probeAt).toBe(60_000);
});

test('does not count rejections of requests that were sent before the quarantine', () => {
  const it = account();
  it.onProvenInvalid(ONE, 0, SETTINGS, 0);
  expect(it.onRejected(ONE, -10, SETTINGS, 40_000)).toBeUndefined();
  expect(it.probeAt).toBe(30_000);
});

test('returns to service when its credential changes, and only then', () => {
  const it = account();
  it.onProvenInvalid(ONE, 0, SETTINGS, 0);
  expect(it.rotate(credential('secret'))).toBe(false);
  expect(it.isQuarantined).toBe(true);
  expect(it.rotate(credential('other'))).toBe(true);
  expect(it.isQuarantined).toBe(false);
});

test('excludes only the client whose requests are rejected, and is in service for others', () => {
  const it = account();
  for (let i = 0; i < 5; i += 1) it.onRejected(ONE, i, SETTINGS, i);
  expect(it.useBy('one', SETTINGS)).toEqual({ probeAt: 30_002, trialAt: undefined });
  expect(it.useBy('other', SETTINGS)).toEqual({ probeAt: Number.NEGATIVE_INFINITY, trialAt: undefined });
});

test('is the last choice of a client once unrelated clients were rejected, and is tried by one at a time', () => {
  const it = account();
  it.onRejected(ONE, 0, SETTINGS, 0);
  it.onRejected({ ...ONE, client: 'of-same-address' }, 0, SETTINGS, 0);
  it.onRejected({ ...ONE, client: 'another-of-it' }, 0, SETTINGS, 0);
  expect(it.isQuarantined).toBe(false);
  expect(it.onRejected(OTHER, 0, SETTINGS, 10)).toBe('quarantined');
  expect(it.useBy('third', SETTINGS)).toEqual({ probeAt: Number.NEGATIVE_INFINITY, trialAt: 30_010 });
  it.beginUse('trial', 40_000);
  expect(it.useBy('third', SETTINGS).trialAt).toBe(70_000);
});

test('returns with an accepted request that was sent after the first rejected one, whatever was rejected later', () => {
  const it = account();
  for (let i = 0; i < 3; i += 1) it.onRejected(ONE, i, SETTINGS, i);
  it.onRejected(OTHER, 20, SETTINGS, 30);
  expect(it.onAccepted(0)).toBeUndefined();
  expect(it.onAccepted(10)).toBe('returned');
  expect(it.useBy('one', SETTINGS).probeAt).toBe(Number.NEGATIVE_INFINITY);
});

test('does not exclude a client for a request that was sent before an accepted one, although a later one was rejected', () => {
  const it = account();
  for (let i = 0; i < 3; i += 1) it.onRejected(ONE, i, SETTINGS, i);
  it.onRejected(OTHER, 60, SETTINGS, 61);
  it.onAccepted(50);
  expect(it.onProvenInvalid({ client: 'third', fairnessKey: 'third' }, 40, SETTINGS, 70)).toBeUndefined();
  expect(it.useBy('third', SETTINGS).probeAt).toBe(Number.NEGATIVE_INFINITY);
});

test('does not delay the probe of excluded clients when a request of another client is rejected', () => {
  const it = account();
  for (let i = 0; i < 3; i += 1) it.onRejected(ONE, i, SETTINGS, i);
  expect(it.onRejected(OTHER, 40_000, SETTINGS, 40_000)).toBeUndefined();
  expect(it.probeAt).toBe(30_002);
});

test('is not excluded by a 401 that another account does not get, if a later request with it was accepted', () => {
  const it = account();
  it.onRejected(ONE, 5, SETTINGS, 6);
  it.onAccepted(7);
  expect(it.onProvenInvalid(ONE, 5, SETTINGS, 8)).toBeUndefined();
  expect(it.isQuarantined).toBe(false);
});

test('counts the rejections of a bounded number of clients', () => {
  const it = account();
  for (let i = 0; i < 3; i += 1) it.onRejected(ONE, i, SETTINGS, i);
  for (let i = 0; i < 1000; i += 1) it.onRejected({ client: `c${i}`, fairnessKey: 'one' }, 3, SETTINGS, 3);
  expect(it.useBy('one', SETTINGS).probeAt).toBe(Number.NEGATIVE_INFINITY);
});

test('keeps what a pool knows of an account through a reload, by name', () => {
  const pool = new AccountPool({ accounts: [{ name: 'a', credential: credential('1') }], quarantine: SETTINGS });
  const [first] = pool.accounts;
  first?.onProvenInvalid(ONE, 0, SETTINGS, 0);
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
