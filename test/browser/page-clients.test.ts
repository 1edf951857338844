import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { ApiClientState } from '../../src/admin/page/api-types.ts';
import { useBrowser } from '../support/admin/browser.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { clientOf, statusOf, upstreamOf } from '../support/admin/status-builders.ts';
import { eventually, startUpstream } from '../support/proxy/tidegate.ts';
import { startWorkers } from '../support/proxy/workers.ts';

const open = useBrowser();
const UPSTREAMS = ['payments', 'ledger', 'mail'];

/** Three clients at each of three upstreams: a row each, the first of which restores its allowance. */
function nineRows(): PageEvent {
  const at = new Date().toISOString();
  const rows = ['aaaa', 'bbbb', 'cccc'].flatMap((key) =>
    UPSTREAMS.map((upstream) => {
      const state: ApiClientState = key === 'aaaa' && upstream === 'payments' ? 'restoring' : 'normal';
      return clientOf({ key, upstream, state, allowance: state === 'normal' ? 1 : 0.999 });
    }),
  );
  const status = statusOf({
    at,
    upstreams: UPSTREAMS.map((name) => upstreamOf({ name })),
    clients: {
      tracked: 9,
      distinct: 3,
      byState: { normal: 8, held: 0, backoff: 0, cooldown: 0, restoring: 1 },
      allowance: { min: 0.999, mean: 1 },
    },
  });
  return ['status', { status, clients: { total: 9, rows } }];
}

function rowsOf(page: Page): Promise<number> {
  return page.locator('#clients tbody tr').count();
}

function countOf(page: Page): Promise<string | null> {
  return page.locator('#clients [data-count]').textContent();
}

describe('the clients table', () => {
  test('shows eight rows until all are asked for, so that the sections below stay in view', async () => {
    const { page, wrongs } = await open((await servePageEvents([nineRows()])).url, {
      viewport: { width: 1440, height: 900 },
    });
    await page.locator('#clients tbody tr').first().waitFor();
    expect(await rowsOf(page)).toBe(8);
    expect(await countOf(page)).toBe('3 clients, 8 of 9 rows, most restricted first');
    for (const name of ['#requests', '#timeline']) {
      const box = await page.locator(name).boundingBox();
      expect(box?.y).toBeLessThan(700);
    }
    await page.getByRole('button', { name: 'Show all 9' }).click();
    await eventually(
      () => rowsOf(page),
      (rows) => rows === 9,
    );
    expect(await countOf(page)).toBe('3 clients, 9 rows, most restricted first');
    await page.getByRole('button', { name: 'Show fewer' }).click();
    await eventually(
      () => rowsOf(page),
      (rows) => rows === 8,
    );
    expect(wrongs).toEqual([]);
  });

  test('shows as many rows for a state as its button says', async () => {
    const { page } = await open((await servePageEvents([nineRows()])).url);
    await page.getByRole('button', { name: 'restoring 1' }).click();
    await eventually(
      () => rowsOf(page),
      (rows) => rows === 1,
    );
    expect(await page.locator('#clients [data-state]').textContent()).toBe('restoring');
    expect(await page.locator('#clients [data-allowance]').textContent()).toBe('99 %');
    expect(await countOf(page)).toBe('1 row matching, most restricted first');
  });

  test('counts a client once that two workers know', async () => {
    const [one, other] = await Promise.all([startUpstream(), startUpstream()]);
    const tidegate = await startWorkers(`
workers: 2
clients: {key: [header:x-api-key]}
upstreams: {payments: {url: "${one.url}"}, ledger: {url: "${other.url}"}}
routes: [{path: /pay, upstream: payments}, {path: /ledger, upstream: ledger}]
`);
    const ask = async (path: string, key: string): Promise<void> => {
      // A connection each, so that both workers get some.
      const headers = { 'x-api-key': key, connection: 'close' };
      await (await fetch(`${tidegate.url}${path}`, { headers })).arrayBuffer();
    };
    const keys = ['shop', 'batch', 'app'];
    await Promise.all(
      Array.from({ length: 20 }, () => keys.flatMap((key) => [ask('/pay', key), ask('/ledger', key)])).flat(),
    );
    const { page } = await open(tidegate.adminUrl);
    await eventually(
      () => countOf(page),
      (text) => text === '3 clients, 6 rows, most restricted first',
    );
    expect(await rowsOf(page)).toBe(6);
    expect(await page.locator('#clients [data-states] button').first().textContent()).toBe('all 6');
  });
});
