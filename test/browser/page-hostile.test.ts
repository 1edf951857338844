import { request } from 'node:http';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useBrowser } from '../support/browser.ts';
import { clientOf, statusOf, upstreamOf } from '../support/status.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';
import { tellPage } from '../support/tell-page.ts';

const open = useBrowser();
const MARKUP = '<img src=/nowhere onerror=alert(1)><script>alert(2)</script>"\'&amp;{{7*7}}';
const PATIENCE = 10_000;

/** Elements that nobody put there. */
function strangers(page: Page): Promise<number> {
  return page.locator('main img, main script, dialog img, dialog script, body > script').count();
}

test('a path that is markup is shown as it is, and does nothing', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`upstreams: {payments: {url: "${upstream.url}"}}`);
  const path = '/<img/src=x/onerror=alert(1)>/<script>alert(2)</script>';
  const { hostname, port } = new URL(tidegate.url);
  const { page, wrongs } = await open(String(tidegate.adminUrl));
  await page.locator('.upstream').waitFor();
  // fetch would have encoded it.
  await new Promise((resolve) => {
    request({ hostname, port, path }, (response) => response.resume().on('end', resolve)).end();
  });
  const cell = page.locator('#requests [data-open]').first();
  await eventually(
    () => cell.textContent(),
    (text) => text?.includes('<script>') === true,
    PATIENCE,
  );
  await cell.click();
  await page.getByRole('dialog').locator('[data-steps] li').first().waitFor();
  expect(await strangers(page)).toBe(0);
  expect(wrongs).toEqual([]);
});

test('nor does anything else that is told, whatever it is', async () => {
  const at = new Date().toISOString();
  const status = statusOf({
    at,
    version: MARKUP,
    config: { loadedAt: at, lastReload: { at, ok: false, problem: MARKUP } },
    upstreams: [
      upstreamOf({ name: MARKUP, endpoints: [{ endpoint: MARKUP, healthy: false }] }),
      upstreamOf({ name: '__proto__' }),
    ],
  });
  const clients = { total: 2, rows: [clientOf({ key: MARKUP, upstream: MARKUP }), clientOf({ key: 'constructor' })] };
  const { url } = await tellPage([
    ['status', { status, clients }],
    ['timeline', { id: '1', at, kind: MARKUP, upstream: MARKUP, text: MARKUP }],
  ]);
  const { page, wrongs } = await open(url);
  const key = page.locator('#clients').getByRole('button', { name: MARKUP, exact: true });
  await key.waitFor();
  await page.locator('#timeline li', { hasText: MARKUP }).waitFor();
  expect(await page.locator('.upstream h3').allTextContents()).toEqual([MARKUP, '__proto__']);
  await key.click();
  expect(await page.getByRole('dialog').locator('h2').textContent()).toBe(`Client ${MARKUP}`);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Pin a rate…' }).first().click();
  expect(await page.getByRole('dialog').locator('h2').textContent()).toBe(`Pin the rate of ${MARKUP}`);
  expect(await strangers(page)).toBe(0);
  expect(wrongs).toEqual([]);
});

test('what could become markup or code is refused by the browser as well', async () => {
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
  const { headers } = await fetch(String(tidegate.adminUrl));
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(headers.get('content-security-policy')).not.toContain('unsafe');
});

test('its files are kept by the browser, and asked about', async () => {
  const tidegate = await startTidegate('upstreams: {payments: {url: "http://127.0.0.1:1"}}');
  for (const [path, type] of [
    ['/', 'text/html; charset=utf-8'],
    ['/page/main.js', 'text/javascript; charset=utf-8'],
    ['/page/page.css', 'text/css; charset=utf-8'],
    ['/page/uplot.js', 'text/javascript; charset=utf-8'],
  ]) {
    const first = await fetch(`${tidegate.adminUrl}${path}`);
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
    expect((await fetch(`${tidegate.adminUrl}${path}`)).status).toBe(404);
  }
});
