import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makePem } from '../support/certificates.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';
import { refusingUrl } from '../support/upstreams/http-upstream.ts';

const open = useBrowser();

/** An upstream that responds to every request with this status. */
async function startResponder(status: number): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end());
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function headlineOf(page: Page, holds: (text: string) => boolean): Promise<string> {
  return eventually(async () => String(await page.locator('.upstream [data-headline]').textContent()), holds);
}

function severityOf(page: Page, selector: string): Promise<string | null> {
  return page.locator(selector).first().getAttribute('data-severity');
}

describe('the page names', () => {
  test('an upstream that was not tried yet, without a green mark', async () => {
    const upstream = await startUpstream();
    const tidegate = await startTidegate(`upstreams: {payments: {url: "${upstream.url}"}}`);
    const { page } = await open(String(tidegate.adminUrl));
    expect(await headlineOf(page, () => true)).toBe('No limit detected, not tried yet');
    expect(await severityOf(page, '.upstream')).toBe('muted');
    expect(await severityOf(page, '.upstream .state')).toBe('muted');
    await fetch(tidegate.url);
    expect(await headlineOf(page, (text) => text.includes('sending'))).toMatch(/healthy$/);
    expect(await severityOf(page, '.upstream .state')).toBe('ok');
  });

  test('an upstream that responds to every request with a 500, also after the traffic has ended', async () => {
    const tidegate = await startTidegate(`upstreams: {payments: {url: "${await startResponder(500)}"}}`);
    for (let i = 0; i < 5; i += 1) expect((await fetch(tidegate.url)).status).toBe(500);
    const { page } = await open(String(tidegate.adminUrl));
    expect(await headlineOf(page, (text) => text.includes('fail'))).toMatch(
      /^Every attempt fails \(responds with 500\), sending /,
    );
    expect(await severityOf(page, '.upstream')).toBe('critical');
    expect(await severityOf(page, '.upstream .state')).not.toBe('ok');
    const failing = page.locator('#timeline li', { hasText: 'payments: responds with 500 (every attempt fails)' });
    await failing.waitFor();
    expect(await failing.getAttribute('data-severity')).toBe('critical');
    expect(await page.title()).toBe('■ payments failing – Tidegate');
    const row = page.locator('#requests tbody tr').first();
    expect(await row.locator('[data-outcome]').textContent()).toBe('forwarded');
    expect(await row.locator('.state').getAttribute('data-severity')).toBe('critical');
  });

  test('an unreachable upstream, why, and its endpoint in red', async () => {
    const url = await refusingUrl();
    const tidegate = await startTidegate(`upstreams: {payments: {url: "${url}"}}`);
    const { page } = await open(String(tidegate.adminUrl));
    const { host } = new URL(url);
    expect((await fetch(tidegate.url)).status).toBe(502);
    expect(await headlineOf(page, (text) => text.startsWith('Unreachable'))).toMatch(
      /^Unreachable: connection refused/,
    );
    expect(await severityOf(page, '.upstream')).toBe('critical');
    expect(await page.locator('[data-endpoints] li').textContent()).toBe(`${host} – unreachable: connection refused`);
    expect(await severityOf(page, '[data-endpoints] li')).toBe('critical');
    expect(await page.title()).toBe('■ payments unreachable – Tidegate');
  });

  test('the cause of a block, on the card and in the timeline', async () => {
    const tidegate = await startTidegate(
      `upstreams: {payments: {url: "${await startResponder(503)}", retry: {attempts: 1}}}`,
    );
    const { page } = await open(String(tidegate.adminUrl));
    await page.locator('.upstream').waitFor();
    await eventually(
      async () => {
        await Promise.all(Array.from({ length: 20 }, async () => (await fetch(tidegate.url)).arrayBuffer()));
        return String(await page.locator('.upstream [data-state]').textContent());
      },
      (state) => state === 'blocked',
    );
    expect(await headlineOf(page, (text) => text.startsWith('Responds'))).toMatch(/^Responds with 503; /);
    await page.locator('#timeline li', { hasText: /blocked .*\(responds with 503\)/ }).waitFor();
  });

  test('a certificate that nears its expiry, then its expiry, in a banner, the title and the timeline', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-expiry-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'tls.pem');
    writeFileSync(path, makePem(new Date(Date.now() + 6000)));
    const tidegate = await startTidegate(
      `listen: {address: 127.0.0.1:0, tls: {cert: ${path}, key: ${path}}}\nupstreams: {payments: {url: "http://127.0.0.1:1"}}`,
    );
    const { page } = await open(String(tidegate.adminUrl));
    const notice = page.locator('#notices li');
    await notice.filter({ hasText: 'Certificate of listen.tls.cert expires in less than a minute.' }).waitFor();
    expect(await notice.getAttribute('data-severity')).toBe('warning');
    await notice
      .filter({ hasText: 'expired less than a minute ago: clients that verify it cannot connect.' })
      .waitFor();
    expect(await notice.getAttribute('data-severity')).toBe('critical');
    expect(await page.title()).toBe('■ certificate of listen.tls.cert expired – Tidegate');
    const row = page.locator('#timeline li', { hasText: 'certificate of listen.tls.cert has expired' });
    await row.waitFor();
    expect(await row.getAttribute('data-severity')).toBe('critical');
    writeFileSync(path, makePem());
    await page.locator('#timeline li', { hasText: 'certificate of listen.tls.cert was renewed' }).waitFor();
    await notice.waitFor({ state: 'detached' });
    expect(await page.title()).toBe('Tidegate');
  });

  test('requests that are refused, while others pass', async () => {
    const upstream = await startUpstream();
    const tidegate = await startTidegate(`
upstreams: {payments: {url: "${upstream.url}", rateLimit: {maxRate: 2/s}, queue: {maxWait: 1ms}}}
`);
    const { page } = await open(String(tidegate.adminUrl));
    const timer = setInterval(() => void fetch(tidegate.url).catch(() => undefined), 50);
    onTestFinished(() => clearInterval(timer));
    await headlineOf(page, (text) => / \d+(\.\d)?\/s refused/.test(text));
    expect(await severityOf(page, '.upstream')).toBe('warning');
    await eventually(
      () => severityOf(page, '.upstream [data-figure=refused]'),
      (severity) => severity === 'warning',
    );
  });
});
