import { describe, expect, test } from 'vitest';
import { formatDeliveryList, formatMatching } from '../../../src/cli/deliveries/format-delivery-list.ts';
import { formatChangedDelivery, formatDelivery } from '../../../src/cli/deliveries/format-delivery.ts';
import {
  ACCEPTED_AT,
  apiDeliveryId,
  deliveriesPage,
  deliveryRow,
  ENDED_AT,
} from '../../support/deliveries/delivery-builders.ts';

const PREFIX = { program: 'tidegate', admin: undefined };
const HOSTILE = 'evt\x1b[2J\u202e\n1';
const UNPRINTABLE = /[^\P{C}\n]|[\u2028\u2029]/u;

describe('a list', () => {
  test('has a line for each, the totals, and the command for the next page', () => {
    const rows = [
      deliveryRow(1, { eventId: 'evt_1' }),
      deliveryRow(2, { state: 'waiting', endedAt: null, nextAttemptAt: ENDED_AT, attempts: 0, lastAttempt: null }),
    ];
    const page = deliveriesPage(rows, apiDeliveryId(2));
    const query = { state: 'open', route: "GET shop's/hooks", limit: '2' };
    expect(formatDeliveryList(page, query, { program: 'npm start --', admin: '9902' }).split('\n')).toEqual([
      expect.stringMatching(/^id {36}state {4}route {3}accepted {18}attempts {2}next or end {15}last result {2}event$/),
      `${apiDeliveryId(1)}  dead     /hooks  ${ACCEPTED_AT}         2  ${ENDED_AT}  status_400   evt_1`,
      `${apiDeliveryId(2)}  waiting  /hooks  ${ACCEPTED_AT}         0  ${ENDED_AT}  –            –`,
      '',
      `in all: 3 waiting, 1 sending, 20 delivered, 2 dead, 0 canceled, 0 unknown; 13KiB of messages; the oldest open one was accepted at ${ACCEPTED_AT}`,
      `next page: npm start -- deliveries list --state open --route 'GET shop'\\''s/hooks' --limit 2 --after ${apiDeliveryId(2)} --admin 9902`,
      '',
    ]);
  });

  test('says that no delivery matches', () => {
    const page = deliveriesPage([]);
    const empty = { ...page, totals: { ...page.totals, oldestAt: null } };
    expect(formatDeliveryList(empty, {}, PREFIX)).toBe(
      'no delivery matches\n\nin all: 3 waiting, 1 sending, 20 delivered, 0 dead, 0 canceled, 0 unknown; 13KiB of messages\n',
    );
  });

  test('cuts long ids of events, and replaces control characters', () => {
    const list = formatDeliveryList(
      deliveriesPage([deliveryRow(1, { eventId: HOSTILE }), deliveryRow(2, { eventId: 'x'.repeat(1000) })]),
      {},
      PREFIX,
    );
    expect(list).toContain('evt�[2J��1\n');
    expect(list).toContain(`${'x'.repeat(39)}…\n`);
    expect(list).not.toMatch(UNPRINTABLE);
  });
});

test('a retry of many shows how many match, and the command that retries them', () => {
  const query = { state: 'dead', route: '/hooks', after: undefined };
  expect(formatMatching(0, query, PREFIX)).toBe('no delivery matches\n');
  expect(formatMatching(1, query, PREFIX)).toBe(
    '1 delivery matches. To retry it:\n  tidegate deliveries retry --state dead --route /hooks --confirm 1\n',
  );
  expect(formatMatching(12, { state: 'dead' }, PREFIX)).toBe(
    '12 deliveries match. To retry them:\n  tidegate deliveries retry --state dead --confirm 12\n',
  );
});

describe('the course of a delivery', () => {
  const courseOf = (given: Parameters<typeof deliveryRow>[1]): readonly string[] =>
    formatDelivery(deliveryRow(1, given)).trimEnd().split('\n').slice(7);
  const attempt = (status: number | null, reason: string | null) => ({
    lastAttempt: { at: '2026-11-30T04:49:59.985Z', tookSeconds: 0.012, status, reason },
  });

  test('of a dead one, with all about it', () => {
    expect(formatDelivery(deliveryRow(1, { eventId: 'evt_1' }))).toBe(`${apiDeliveryId(1)}: dead
  route      /hooks
  upstream   shop
  client     956feee998fe0eb7
  event id   evt_1
  order key  none

  2026-11-30T04:48:53.000Z  accepted
  2026-11-30T04:49:59.985Z  attempt 2: not acknowledged, the upstream responded with 400 after 12 ms
  2026-11-30T04:50:00.000Z  dead: no further attempt is made, unless it is retried
`);
  });

  test('of a write that is done, with its request and the response to it', () => {
    const message = {
      method: 'POST',
      target: '/v1/charges',
      headers: [],
      encoding: 'text' as const,
      body: 'a=1',
      peer: '::1',
    };
    const headers: [string, string][] = [['X-Id', 'ch\u001b1']];
    const response = { status: 201, headers, encoding: 'base64' as const, body: '/w==' };
    const row = deliveryRow(1, { kind: 'write', state: 'delivered', ...attempt(201, null) });
    const text = formatDelivery({ ...row, message, response });
    expect(text).toContain('  kind       async write\n');
    expect(text).toMatch(/\n\nrequest from ::1:\n\nPOST \/v1\/charges\n\na=1\n/);
    expect(text).toMatch(/\n\nresponse, with its body in base64:\n\n201\nX-Id: ch\ufffd1\n\n\/w==\n$/);
    const long = formatDelivery({ ...row, response: { status: 201, headers: [], encoding: 'text', body: null } });
    expect(long).toMatch(/\n\nresponse, without its body, which is too long:\n\n201\n$/);
    expect(formatDelivery({ ...row, response: null })).toContain(
      'The response is no longer stored, or cannot be decrypted',
    );
  });

  test.each([
    [
      { state: 'waiting', endedAt: null, nextAttemptAt: ENDED_AT, attempts: 0, lastAttempt: null },
      [`  ${ENDED_AT}  attempt 1 is due`],
    ],
    [
      { state: 'waiting', endedAt: null, nextAttemptAt: ENDED_AT, attempts: 0 },
      [
        '  2026-11-30T04:49:59.985Z  last attempt of an earlier schedule: not acknowledged, the upstream responded with 400 after 12 ms',
        `  ${ENDED_AT}  attempt 1 is due`,
      ],
    ],
    [
      { state: 'sending', endedAt: null, sendingSince: ENDED_AT, ...attempt(502, 'connect') },
      [
        '  2026-11-30T04:49:59.985Z  attempt 2: failed, no connection to the upstream (connect) after 12 ms',
        `  ${ENDED_AT}  attempt 3 began, and is in progress`,
      ],
    ],
    [
      { state: 'delivered', ...attempt(204, null) },
      ['  2026-11-30T04:49:59.985Z  attempt 2: acknowledged with 204 after 12 ms', `  ${ENDED_AT}  delivered`],
    ],
    [
      { state: 'canceled', ...attempt(200, 'not_acknowledged') },
      [
        '  2026-11-30T04:49:59.985Z  attempt 2: not acknowledged, acknowledgedBy does not accept the response (200) after 12 ms',
        `  ${ENDED_AT}  canceled by an operator`,
      ],
    ],
  ] as const)('%j', (given, lines) => expect(courseOf(given)).toEqual([`  ${ACCEPTED_AT}  accepted`, ...lines]));

  test('of a write whose replica has not reported the end of an attempt says so', () => {
    const { lastAttempt } = attempt(null, 'unknown_lease_ended');
    const row = deliveryRow(1, { kind: 'write', state: 'waiting', attempts: 0, lastAttempt });
    expect(formatDelivery(row)).toContain(
      '\n  2026-11-30T04:49:59.985Z  may have taken effect: the replica that had claimed it was killed, suspended or cut off from Redis\n',
    );
  });

  test.each([
    [201, null, 'decided, the upstream responded with 201'],
    [402, null, 'decided, the upstream responded with 402'],
    [500, 'unknown_status_500', 'may have taken effect, the upstream responded with 500'],
    [504, 'unknown_timeout', 'may have taken effect, no response in time (timeout)'],
    [504, 'unknown_key_expired', 'may have taken effect, key_expired'],
  ])('of an attempt of a write with %s and %s', (status, reason, text) => {
    const course = formatDelivery(deliveryRow(1, { kind: 'write', ...attempt(status, reason) })).split('\n');
    expect(course).toContain(`  2026-11-30T04:49:59.985Z  attempt 2: ${text} after 12 ms`);
  });

  test('of a write that is done', () => {
    const course = formatDelivery(deliveryRow(1, { kind: 'write', state: 'delivered', ...attempt(402, null) }));
    expect(course).toContain(`  ${ENDED_AT}  delivered: the upstream has decided about the write\n`);
  });

  test.each([
    ['unreadable', 'not sent: the stored request cannot be decrypted'],
    ['expired', 'not sent: it has waited for longer than limits.deliveryAge'],
  ])('of one that is %s', (reason, text) => {
    expect(courseOf({ attempts: 0, ...attempt(null, reason) })[1]).toBe(`  2026-11-30T04:49:59.985Z  ${text}`);
  });

  test('is followed by the notes of a change', () => {
    const text = formatChangedDelivery({ ...deliveryRow(1), notes: ['It is due now.', 'Others are first.'] });
    expect(text).toBe(`${formatDelivery(deliveryRow(1))}\nIt is due now. Others are first.\n`);
  });
});

describe('the request of a delivery', () => {
  const request = {
    ...{ method: 'POST', target: '/hooks?x=1', peer: '127.0.0.1', encoding: 'text' as const },
    headers: [
      ['Host', 'shop'],
      ['X-Event', 'evt_1'],
    ] as [string, string][],
    body: '{\r\n\t"id": 1\n}',
  };
  const textOf = (message: Parameters<typeof formatDelivery>[0]['message']): string => {
    const row = deliveryRow(1);
    return formatDelivery({ ...row, message }).slice(formatDelivery(row).length);
  };

  test('has its lines as they were sent', () => {
    expect(textOf(request)).toBe(`
request from 127.0.0.1:

POST /hooks?x=1
Host: shop
X-Event: evt_1

{
\t"id": 1
}
`);
  });

  test('has no body if it had none, base64 if it is not text, and no control characters', () => {
    expect(textOf({ ...request, body: '' })).toMatch(/X-Event: evt_1\n$/);
    expect(textOf({ ...request, encoding: 'base64', body: '/wAB' })).toMatch(
      /^\nrequest from 127\.0\.0\.1, with its body in base64:\n[^]*\n\n\/wAB\n$/,
    );
    const hostile = { target: HOSTILE, headers: [[HOSTILE, HOSTILE]] as [string, string][], body: HOSTILE };
    expect(textOf({ ...request, ...hostile })).not.toMatch(UNPRINTABLE);
  });

  test('may be gone', () => {
    expect(textOf(null)).toBe(
      '\nThe request is no longer stored, or cannot be decrypted because secret has changed.\n',
    );
  });
});
