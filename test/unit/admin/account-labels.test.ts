import { expect, test } from 'vitest';
import type { UpstreamStatus } from '../../../src/admin/page/api-types.ts';
import { accountSeverity, formatAccount } from '../../../src/admin/page/text/account-labels.js';
import { formatClock } from '../../../src/admin/page/text/labels.js';
import { upstreamSeverity } from '../../../src/admin/page/text/limit-labels.js';
import { upstreamOf } from '../../support/admin/status-builders.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');
const SERVING: UpstreamStatus['accounts'][number] = {
  ...{ name: 'main', quarantined: false, commonlyRejected: false, quarantinedSince: null, nextProbe: null },
  ...{ rate: 8, inFlight: 2 },
};
const since = '2026-11-22T02:59:30.000Z';
const QUARANTINED = { ...SERVING, quarantined: true, quarantinedSince: since, nextProbe: '2026-11-22T03:00:20.000Z' };

test('an account in service has its rate and its requests in flight', () => {
  expect(formatAccount(SERVING, NOW)).toBe('main – 8.0/s, 2 in flight');
  expect(formatAccount({ ...SERVING, rate: null }, NOW)).toBe('main – no limit, 2 in flight');
  expect(accountSeverity(SERVING)).toBe('ok');
});

test('an account in quarantine has its beginning and its next probe', () => {
  const begun = `main – credential rejected since ${formatClock(since)} for one client or address`;
  expect(formatAccount(QUARANTINED, NOW)).toBe(`${begun}, next probe in 20 s; 8.0/s, 2 in flight`);
  expect(formatAccount(QUARANTINED, NOW + 30_000)).toBe(`${begun}, probe due; 8.0/s, 2 in flight`);
  expect(formatAccount({ ...QUARANTINED, commonlyRejected: true }, NOW)).toContain(' for several unrelated clients, ');
  expect(accountSeverity(QUARANTINED)).toBe('warning');
});

test('an upstream with an account in quarantine has a warning', () => {
  expect(upstreamSeverity(upstreamOf({ accounts: [SERVING] }))).toBe('ok');
  expect(upstreamSeverity(upstreamOf({ accounts: [SERVING, QUARANTINED] }))).toBe('warning');
});
