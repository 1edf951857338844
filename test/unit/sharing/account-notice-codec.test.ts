import { expect, test } from 'vitest';
import type { AccountNotice } from '../../../src/core/accounts/account-notice.ts';
import { formatNotice, parseNotice } from '../../../src/sharing/redis/account-notice-codec.ts';

const TIMES = { since: 90, evidenceSentAt: 80, interval: 40, probeAt: 130, trialAt: 140 };
const QUARANTINE = { ...TIMES, isCommon: false, fairnessKey: 'f', clients: ['one'] };
const NOTICE: AccountNotice = { upstream: 'api', account: 'main', credentialTag: 'tag', acceptedSentAt: 70 };

test('a notice has times of Redis’ clock, which each process converts to its own', () => {
  const text = formatNotice({ ...NOTICE, quarantine: QUARANTINE }, 'me', 1_000_000);
  expect(parseNotice(text, 'other', 999_000)).toEqual({
    ...{ ...NOTICE, acceptedSentAt: 1070 },
    quarantine: { ...QUARANTINE, since: 1090, evidenceSentAt: 1080, probeAt: 1130, trialAt: 1140 },
  });
});

test.each([
  ['in service', NOTICE],
  ['in service, and without an accepted request', { ...NOTICE, acceptedSentAt: undefined }],
])('a notice of an account %s has no quarantine', (_, notice) => {
  expect(parseNotice(formatNotice(notice, 'me', 0), 'other', 0)).toEqual({ ...notice, quarantine: undefined });
});

test('a notice is ignored by its sender', () => {
  expect(parseNotice(formatNotice(NOTICE, 'me', 0), 'me', 0)).toBeUndefined();
});

/** A valid text, with a part of it replaced. */
function change(from: string, to: string): string {
  const text = formatNotice({ ...NOTICE, quarantine: QUARANTINE }, 'me', 0);
  expect(text).toContain(from);
  return text.replace(from, to);
}

test.each([
  '1500 1 up\0client',
  '{',
  '{}',
  'null',
  '[]',
  change('"version":1', '"version":2'),
  change('"account":"main"', '"account":1'),
  change('"credentialTag":"tag"', '"credentialTag":7'),
  change('"acceptedSentAt":70', '"acceptedSentAt":1e999'),
  change('"acceptedSentAt":70', '"acceptedSentAt":"70"'),
  change('"since":90', '"since":null'),
  change('"interval":40', '"interval":1e999'),
  change('"probeAt":130,', ''),
  change('"isCommon":false', '"isCommon":0'),
  change('["one"]', '[1]'),
  change('["one"]', '{}'),
  change('["one"]', JSON.stringify(Array.from({ length: 51 }, (_, i) => `c${i}`))),
  change('["one"]', JSON.stringify(['x'.repeat(65)])),
  change('"fairnessKey":"f"', `"fairnessKey":"${'x'.repeat(65)}"`),
])('a notice is nothing else: %s', (text) => {
  expect(parseNotice(text, 'other', 0)).toBeUndefined();
});
