import { request } from 'node:http';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { clientOf, deliveryOf, NO_DELIVERIES, statusOf, upstreamOf } from '../support/admin/status-builders.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';

const open = useBrowser();
const MARKUP = '<img src=/nowhere onerror=alert(1)><script>alert(2)</script>"\'&amp;{{7*7}}';

/** Counts elements that injected markup would create. */
function countInjected(page: Page): Promise<number> {
  return page.locator('main img, main script, dialog img, dialog script, body > script').count();
}

/** Reads the body as well: the connection of one that nobody reads stays open. */
async function fetchAll(url: string): Promise<Response> {
  const response = await fetch(url);
  await response.arrayBuffer();
  return response;
}

test('shows markup in a request path as text', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`upstreams: {payments: {url: "${upstream.url}"}}`);
  const path = '/<img/src=x/onerror=alert(1)>/<script>alert(2)</script>';
  const { hostname, port } = new URL(tidegate.url);
  const { page, wrongs } = await open(String(tidegate.adminUrl));
  await page.locator('.upstream').waitFor();
  // fetch would encode the path.
  await new Promise((resolve) => {
    request({ hostname, port, path }, (response) => response.resume().on('end', resolve)).end();
  });
  const cell = page.locator('#requests [data-open]').first();
  await eventually(
    () => cell.textContent(),
    (text) => text?.includes('<script>') === true,
  );
  await cell.click();
  await page.getByRole('dialog').locator('[data-steps] li').first().waitFor();
  expect(await countInjected(page)).toBe(0);
  expect(wrongs).toEqual([]);
});

test('shows markup in names, keys and events as text', async () => {
  const at = new Date().toISOString();
  const status = statusOf({
    at,
    version: MARKUP,
    config: { loadedAt: at, lastReload: { at, ok: false, problem: MARKUP } },
    upstreams: [
      upstreamOf({
        name: MARKUP,
        endpoints: [
          {
            endpoint: MARKUP,
            healthy: false,
            failure: { at, reason: 'connect', code: MARKUP, text: MARKUP },
          },
        ],
      }),
      upstreamOf({ name: '__proto__' }),
    ],
  });
  const clients = { total: 2, rows: [clientOf({ key: MARKUP, upstream: MARKUP }), clientOf({ key: 'constructor' })] };
  const { url } = await servePageEvents([
    ['status', { status, clients }],
    ['timeline', { id: '1', at, kind: MARKUP, upstream: MARKUP, text: MARKUP }],
  ]);
  const { page, wrongs } = await open(url);
  const key = page.locator('#clients').getByRole('button', { name: MARKUP, exact: true });
  await key.waitFor();
  await page.locator('#timeline li', { hasText: MARKUP }).waitFor();
  for (const name of [MARKUP, '__proto__']) {
    await page.locator('#short').getByRole('button', { name, exact: true }).click();
  }
  expect(await page.locator('.upstream h3').allTextContents()).toEqual([MARKUP, '__proto__']);
  await key.click();
  expect(await page.getByRole('dialog').locator('h2').textContent()).toBe(`Client ${MARKUP}`);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Pin a rate…' }).first().click();
  expect(await page.getByRole('dialog').locator('h2').textContent()).toBe(`Pin the rate of ${MARKUP}`);
  expect(await countInjected(page)).toBe(0);
  expect(wrongs).toEqual([]);
});

test('shows markup in deliveries and their messages as text', async () => {
  const at = new Date().toISOString();
  const status = statusOf({ at, deliveries: { ...NO_DELIVERIES, oldestAt: at } });
  const lastAttempt = { at, tookSeconds: 1, status: null, reason: MARKUP };
  const fields = { id: MARKUP, route: MARKUP, upstream: MARKUP, eventId: MARKUP, orderKey: MARKUP, client: MARKUP };
  const delivery = {
    ...deliveryOf({ ...fields, lastAttempt }),
    message: {
      ...({ method: MARKUP, target: MARKUP, peer: MARKUP, encoding: 'text', body: MARKUP } as const),
      headers: [[MARKUP, MARKUP] as [string, string]],
    },
  };
  const { url } = await servePageEvents([['status', { status, clients: { total: 0, rows: [] } }]], [delivery]);
  const { page, wrongs } = await open(url);
  await page.locator('#deliveries [data-open]').click();
  const dialog = page.getByRole('dialog');
  expect(await dialog.locator('h2').textContent()).toBe(`Delivery ${MARKUP}`);
  await dialog.getByRole('button', { name: 'Show message' }).click();
  await dialog.locator('pre').waitFor();
  expect(await dialog.locator('pre').textContent()).toBe(MARKUP);
  expect(await dialog.locator('[data-headers] > tr > *').allTextContents()).toEqual([MARKUP, MARKUP]);
  await dialog.getByRole('button', { name: 'Cancel delivery…' }).click();
  expect(await page.locator('#ask-text').textContent()).toContain(MARKUP);
  expect(await countInjected(page)).toBe(0);
  expect(wrongs).toEqual([]);
});

test('the browser blocks markup and code under the Content-Security-Policy', async () => {
  const tidegate = await startTidegate('upstreams: {payments: {url: "http://127.0.0.1:1"}}');
  const { page, wrongs } = await open(String(tidegate.adminUrl));
  const refused = await page.evaluate(() => {
    const thrown: string[] = [];
    for (const attempt of [
      () => (document.body.innerHTML = '<b>x</b>'),
      () => document.body.insertAdjacentHTML('beforeend', '<b>x</b>'),
      () => Reflect.construct(Function, ['return 1']) as unknown,
      () => document.createElement('script').setAttribute('src', 'https://example.com/x.js'),
    ]) {
      try {
        attempt();
      } catch (error) {
        thrown.push(error instanceof Error ? error.name : '');
      }
    }
    return thrown;
  });
  expect(refused.length).toBeGreaterThanOrEqual(3);
  expect(wrongs.length).toBeGreaterThan(0);
  const { headers } = await fetchAll(String(tidegate.adminUrl));
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(headers.get('content-security-policy')).not.toContain('unsafe');
});

test('serves its files with an ETag and answers a matching request with 304', async () => {
  const tidegate = await startTidegate('upstreams: {payments: {url: "http://127.0.0.1:1"}}');
  for (const [path, type] of [
    ['/', 'text/html; charset=utf-8'],
    ['/page/main.js', 'text/javascript; charset=utf-8'],
    ['/page/page.css', 'text/css; charset=utf-8'],
    ['/page/uplot.js', 'text/javascript; charset=utf-8'],
  ]) {
    const first = await fetchAll(`${tidegate.adminUrl}${path}`);
    expect(first.status).toBe(200);
    expect(first.headers.get('content-type')).toBe(type);
    const tag = String(first.headers.get('etag'));
    const again = await fetch(`${tidegate.adminUrl}${path}`, { headers: { 'if-none-match': tag } });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe('');
  }
  for (const path of [
    '/page/',
    '/page/api-types.ts',
    '/page/tsconfig.json',
    '/page/../admin-server.ts',
    '/page/%2e%2e/serve-page.ts',
  ]) {
    expect((await fetchAll(`${tidegate.adminUrl}${path}`)).status).toBe(404);
  }
});
