import { expect, test } from 'vitest';
import type { KeyRow, KeysPage } from '../../../src/admin/page/api-types.ts';
import { formatKey, formatKeyList, formatKeys } from '../../../src/cli/keys/format-keys.ts';

const ROW: KeyRow = {
  ...{
    id: '0123456789abcdef',
    state: 'unresolved',
    upstream: 'till',
    firstSentAt: null,
    endpoint: null,
    upstreamKey: null,
  },
  ...{ requests: 0, responses: 0, finalFor: 1 },
};
const PAGE: KeysPage = { total: null, matching: 2, truncated: false, keys: [ROW] };
const NOTE = 'Redis has more keys than one request searches: others may match\n';

test('a list shows how many more keys match, and notes that unsearched keys may match', () => {
  const list = formatKeyList(PAGE);
  expect(list.split('\n')).toEqual([
    expect.stringMatching(/^id +state +upstream +first sent +endpoint +requests +responses +final for$/),
    expect.stringMatching(/^0123456789abcdef +unresolved +till +– +– +0 +0 +1$/),
    'and 1 more',
    '',
  ]);
  expect(formatKeyList({ ...PAGE, truncated: true })).toBe(`${list}${NOTE}`);
  const none = { ...PAGE, matching: 0, keys: [] };
  expect(formatKeyList(none)).toBe('no key matches\n');
  expect(formatKeyList({ ...none, truncated: true })).toBe(`no key matches\n${NOTE}`);
});

test('the details of keys are followed by a note that unsearched keys may match', () => {
  const other = { ...ROW, id: 'fedcba9876543210' };
  const both = `${formatKey(ROW)}\n${formatKey(other)}`;
  expect(formatKeys({ ...PAGE, keys: [ROW, other] })).toBe(both);
  expect(formatKeys({ ...PAGE, keys: [ROW, other], truncated: true })).toBe(`${both}${NOTE}`);
});
