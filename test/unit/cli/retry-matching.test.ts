import { describe, expect, test } from 'vitest';
import type { DeliveriesPage, DeliveryRow } from '../../../src/admin/page/api-types.ts';
import type { FetchResult } from '../../../src/cli/deliveries/deliveries-api.ts';
import { exportDeliveries } from '../../../src/cli/deliveries/export-deliveries.ts';
import { countMatching, retryMatching } from '../../../src/cli/deliveries/retry-matching.ts';
import { apiDeliveryId, deliveriesPage, deliveryRow } from '../../support/deliveries/delivery-builders.ts';

type Failed = Exclude<FetchResult<never>, { readonly kind: 'fetched' }>;

const refused = (status: number, detail: string): Failed => ({
  ...{ kind: 'refused', status, detail },
  failure: { kind: 'failed', message: `id: ${detail}`, exitCode: 1 },
});
const LOST: Failed = {
  kind: 'unusable',
  cause: 'unreachable',
  code: 'ECONNREFUSED',
  failure: { kind: 'failed', message: 'it cannot be reached', exitCode: 1 },
};

/** Pages of rows, or failures, in place of a proxy. `changes` are by id. */
function fakeApi(pages: readonly (readonly DeliveryRow[] | Failed)[], failing: Readonly<Record<string, Failed>> = {}) {
  const asked: string[] = [];
  async function* readPages(): AsyncGenerator<FetchResult<DeliveriesPage>> {
    for (const page of pages) {
      yield await Promise.resolve('kind' in page ? page : { kind: 'fetched' as const, data: deliveriesPage(page) });
    }
  }
  const row = (id: string): DeliveryRow => ({ ...deliveryRow(1), id });
  const respond = <T extends object>(id: string, more: T) => {
    asked.push(id);
    return Promise.resolve(failing[id] ?? { kind: 'fetched' as const, data: { ...row(id), ...more } });
  };
  const api = {
    pages: readPages,
    change: (_action: 'retry' | 'cancel', id: string) => respond(id, { notes: ['It is due now.'] }),
    find: (id: string) => respond(id, { message: null }),
  };
  return { api, asked };
}

const rows = (...numbers: readonly number[]) => numbers.map((n) => deliveryRow(n));
const ids = (...numbers: readonly number[]) => numbers.map(apiDeliveryId);

async function matchingOf(api: ReturnType<typeof fakeApi>['api']) {
  const counted = await countMatching(api, {});
  if (counted.kind !== 'counted') throw new Error(counted.kind);
  return counted.matching;
}

describe('a retry of many', () => {
  test('counts and retries all pages', async () => {
    const { api, asked } = fakeApi([rows(1, 2), rows(3)]);
    const matching = await matchingOf(api);
    expect(matching.count).toBe(3);
    expect(await retryMatching(api, {}, matching)).toEqual({
      ...{ matching: 3, retried: 3, failed: 0, failures: [], stopped: null },
    });
    expect(asked).toEqual(ids(1, 2, 3));
  });

  test('leaves those that match only after the count: accepted later, or dead later', async () => {
    const matching = await matchingOf(fakeApi([rows(1, 2)]).api);
    const later = '2026-11-30T04:55:00.000Z';
    const diedLater = deliveryRow(3, { endedAt: later });
    const cameLater = deliveryRow(4, { acceptedAt: later });
    const { api, asked } = fakeApi([[...rows(1), diedLater, ...rows(2), cameLater]]);
    expect(await retryMatching(api, {}, matching)).toMatchObject({ matching: 2, retried: 2 });
    expect(asked).toEqual(ids(1, 2));
  });

  test('never retries more than were counted, although one that was being sent waits now', async () => {
    const waiting = (n: number) => deliveryRow(n, { state: 'waiting', endedAt: null });
    const matching = await matchingOf(fakeApi([[waiting(1), waiting(3)]]).api);
    const { api, asked } = fakeApi([[waiting(1), waiting(2), waiting(3)]]);
    expect(await retryMatching(api, {}, matching)).toMatchObject({ matching: 2, retried: 2 });
    expect(asked).toEqual(ids(1, 2));
  });

  test('goes on after one that is gone or in another state, and reports it', async () => {
    const failing = {
      [apiDeliveryId(1)]: refused(404, 'No such delivery.'),
      [apiDeliveryId(3)]: refused(409, 'It is sent.'),
    };
    const { api } = fakeApi([rows(1, 2, 3, 4)], failing);
    expect(await retryMatching(api, {}, await matchingOf(api))).toEqual({
      ...{ matching: 4, retried: 2, failed: 2, stopped: null },
      failures: [
        { id: apiDeliveryId(1), why: 'No such delivery.' },
        { id: apiDeliveryId(3), why: 'It is sent.' },
      ],
    });
  });

  test('lists the first hundred failures, and counts the others', async () => {
    const numbers = Array.from({ length: 150 }, (_, n) => n);
    const failing = Object.fromEntries(ids(...numbers).map((id) => [id, refused(409, 'It is sent.')]));
    const { api } = fakeApi([rows(...numbers)], failing);
    const report = await retryMatching(api, {}, await matchingOf(api));
    expect([report.failed, report.failures.length]).toEqual([150, 100]);
  });

  test.each([
    ['the proxy is gone', LOST, 'it cannot be reached'],
    ['the database cannot be written', refused(503, 'It is not stored.'), 'id: It is not stored.'],
    ['the token is wrong', refused(403, 'Actions require a token.'), 'id: Actions require a token.'],
  ])('stops if %s', async (_, failure, stopped) => {
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const { api, asked } = fakeApi([rows(...numbers)], { [apiDeliveryId(10)]: failure });
    expect(await retryMatching(api, {}, await matchingOf(api))).toMatchObject({
      matching: 20,
      retried: 15,
      failed: 0,
      stopped,
    });
    expect(asked).toEqual(ids(...numbers.slice(0, 16)));
  });

  test('fails if a page cannot be read', async () => {
    const { api } = fakeApi([rows(1), LOST]);
    expect(await countMatching(api, {})).toEqual(LOST);
    const matching = await matchingOf(fakeApi([rows(1)]).api);
    expect(await retryMatching(api, {}, matching)).toMatchObject({ retried: 1, stopped: 'it cannot be reached' });
  });
});

describe('an export', () => {
  const exported = async (
    api: ReturnType<typeof fakeApi>['api'],
    message: boolean,
    isOpen = (_lines: number) => true,
  ) => {
    const written: string[] = [];
    const write = (text: string) => {
      written.push(...text.split('\n').slice(0, -1));
      return Promise.resolve(isOpen(written.length));
    };
    const end = await exportDeliveries(api, { query: {}, message }, write);
    return { end, written: written.map((line) => JSON.parse(line) as DeliveryRow) };
  };

  test('writes a line for each delivery of all pages', async () => {
    const { api, asked } = fakeApi([rows(1, 2), rows(3)]);
    expect(await exported(api, false)).toEqual({ end: { kind: 'exported' }, written: rows(1, 2, 3) });
    expect(asked).toEqual([]);
  });

  test('reads the message of each, which one that is gone meanwhile has no more', async () => {
    const { api, asked } = fakeApi([rows(1, 2)], { [apiDeliveryId(2)]: refused(404, 'No such delivery.') });
    const { end, written } = await exported(api, true);
    expect(end).toEqual({ kind: 'exported' });
    expect(written).toEqual(rows(1, 2).map((row) => ({ ...row, message: null })));
    expect(asked).toEqual(ids(1, 2));
  });

  test.each([false, true])('reads no more if nobody reads the output, with messages: %s', async (message) => {
    const { api, asked } = fakeApi([rows(1, 2), rows(3)]);
    const { end, written } = await exported(api, message, (lines) => lines < 1);
    expect([end, written.length]).toEqual([{ kind: 'exported' }, message ? 1 : 2]);
    expect(asked).toEqual(message ? ids(1) : []);
  });

  test('returns the last one that was written before a failure', async () => {
    expect((await exported(fakeApi([rows(1, 2), LOST]).api, false)).end).toEqual({
      failure: LOST.failure,
      last: apiDeliveryId(2),
    });
    expect((await exported(fakeApi([LOST]).api, false)).end).toEqual({ failure: LOST.failure, last: undefined });
    const { api } = fakeApi([rows(1, 2)], { [apiDeliveryId(2)]: LOST });
    expect((await exported(api, true)).end).toEqual({ failure: LOST.failure, last: apiDeliveryId(1) });
  });
});
