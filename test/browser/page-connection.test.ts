import { expect, test } from 'vitest';
import type { ClientsPage } from '../../src/admin/page/api-types.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';

const open = useBrowser();

test('shows a lost connection, and reconnects by itself', async () => {
  const upstream = await startUpstream();
  const yaml = (admin: string): string => `
admin: ${admin}
upstreams: {payments: {url: "${upstream.url}"}}
`;
  const first = await startTidegate(yaml('127.0.0.1:0'));
  const { page, wrongs } = await open(String(first.adminUrl));
  await page.locator('.upstream').waitFor();
  const banner = page.locator('#connection');
  expect(await banner.isVisible()).toBe(false);
  await first.close();
  await page.getByText(/^Connection lost: .* Retrying in \d+ s\.$/).waitFor();
  expect(await page.locator('#changes').textContent()).toContain('The connection to Tidegate is lost.');
  expect(await banner.textContent()).not.toContain('fetch');
  // Without a connection, the last known state may be wrong: the phase is not green, and uptime and countdowns stop.
  expect(await page.locator('#phase [data-text]').textContent()).toBe('not connected');
  expect(await page.locator('#phase').getAttribute('data-severity')).toBe('critical');
  expect(await page.title()).toBe('■ not connected – Tidegate');
  const up = await page.locator('[data-fact=up]').textContent();
  // The banner counts, so the page has been drawn again.
  const age = (): Promise<string | undefined> =>
    banner.textContent().then((text) => /Data is (\d+) s old/.exec(text ?? '')?.[1]);
  const before = Number(await age());
  await eventually(age, (text) => Number(text) >= before + 2);
  expect(await page.locator('[data-fact=up]').textContent()).toBe(up);

  const { host } = new URL(String(first.adminUrl));
  const second = await startTidegate(yaml(host));
  await fetch(second.url);
  await page
    .getByRole('button', { name: 'Retry now' })
    .click({ timeout: 2000 })
    .catch(() => undefined); // it may have reconnected already
  await banner.waitFor({ state: 'hidden', timeout: 20_000 });
  // Requests made while disconnected are loaded afterwards.
  await eventually(
    () => page.locator('#outcomes').textContent(),
    (text) => text?.includes('1 forwarded') === true,
  );
  expect(await page.locator('#phase [data-text]').textContent()).toBe('ready');
  await eventually(
    () => page.locator('#requests tbody tr').count(),
    (count) => count === 1,
  );
  expect(wrongs).toEqual([]);
});

test('pauses and resumes the list of requests, which names the client of each', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`upstreams: {payments: {url: "${upstream.url}"}}`);
  await fetch(tidegate.url);
  const { page } = await open(String(tidegate.adminUrl));
  const rows = page.locator('#requests tbody tr');
  await rows.first().waitFor();
  const { clients } = (await (await fetch(`${tidegate.adminUrl}/api/clients`)).json()) as ClientsPage;
  const key = String(clients[0]?.key);
  expect(await rows.first().locator('[data-client]').textContent()).toBe(key.slice(0, 8));
  expect(await rows.first().locator('[data-client]').getAttribute('title')).toBe(key);
  await page.getByRole('button', { name: 'Pause' }).click();
  await fetch(tidegate.url);
  await page.getByText('paused, 1 newer').waitFor();
  expect(await rows.count()).toBe(1);
  await page.getByRole('button', { name: 'Resume' }).click();
  await eventually(
    () => rows.count(),
    (count) => count === 2,
  );
  await page.getByRole('button', { name: 'Pause' }).waitFor();
});
