import { expect, test } from 'vitest';
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
  await eventually(
    () => page.locator('#requests tbody tr').count(),
    (count) => count === 1,
  );
  expect(wrongs).toEqual([]);
});
