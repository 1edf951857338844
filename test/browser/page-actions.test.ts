import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { ClientsPage, Status, UpstreamStatus } from '../../src/admin/page/api-types.ts';
import { useBrowser } from '../support/browser.ts';
import { writeConfigFile } from '../support/config-file.ts';
import type { Running } from '../support/process.ts';
import { startProcess } from '../support/process.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

const open = useBrowser();
const TOKEN = 'open sesame open';
const PATIENCE = 10_000;

async function start(token = TOKEN): Promise<Tidegate> {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
admin: {listen: 127.0.0.1:0${token === '' ? '' : `, token: ${token}`}}
clients: {key: [header:x-api-key]}
upstreams: {payments: {url: "${upstream.url}"}}
`);
  await fetch(`${tidegate.url}/`, { headers: { 'x-api-key': 'shop' } });
  return tidegate;
}

async function upstreamOf(tidegate: Tidegate): Promise<UpstreamStatus> {
  const response = await fetch(`${tidegate.adminUrl}/api/status`);
  const [upstream] = ((await response.json()) as Status).upstreams;
  if (upstream === undefined) throw new Error('it has an upstream');
  return upstream;
}

async function giveToken(page: Page, token = TOKEN): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.keyboard.press('Enter');
}

function writeConfig(admin: string, upstream: string): string {
  return writeConfigFile(`
listen: 127.0.0.1:0
admin: {listen: "${admin}", token: ${TOKEN}}
drain: {delay: 0, timeout: 1s}
upstreams: {payments: {url: "${upstream}"}}
`);
}

async function adminOf({ log }: Running): Promise<string> {
  const lines = await eventually(log, (seen) => seen.some(({ msg }) => msg === 'listening'), 20_000);
  return String(lines.find(({ msg }) => msg === 'listening')?.['admin']);
}

function toast(page: Page): Promise<string | null> {
  return page.locator('#toast').textContent();
}

describe('an operator', () => {
  test('pins a rate and releases it, and is asked for the token once', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Pin a rate…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pin the rate of payments' });
    await dialog.getByRole('textbox').fill('fast');
    await dialog.getByRole('button', { name: 'Pin it' }).click();
    await dialog.getByText('Type a rate such as 50/s').waitFor();
    await dialog.getByRole('textbox').fill('30/m');
    await dialog.getByRole('button', { name: 'Pin it' }).click();
    await giveToken(page);
    await dialog.waitFor({ state: 'hidden' });
    expect(await toast(page)).toContain('The rate of payments is pinned at 30/m.');
    expect((await upstreamOf(tidegate)).pinned).toBe(0.5);
    await page.getByText('pinned at 0.5/s by an operator').first().waitFor({ timeout: PATIENCE });

    await page.getByRole('button', { name: 'Release…' }).click();
    await page.getByRole('button', { name: 'Release it' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect((await upstreamOf(tidegate)).pinned).toBeNull();
    await eventually(
      () => page.locator('#timeline .kind').allTextContents(),
      (kinds) => kinds.includes('pin') && kinds.includes('unpin'),
      PATIENCE,
    );
    expect(wrongs).toEqual([]);
  });

  test('blocks an upstream for a while, sees it count down, and unblocks it', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Block…' }).click();
    await page.getByLabel('For how long').selectOption('for 5 minutes');
    await page.getByRole('button', { name: 'Block payments' }).click();
    await giveToken(page);
    const headline = (): Promise<string | null> => page.locator('.upstream [data-headline]').textContent();
    const first = await eventually(headline, (text) => text?.startsWith('Blocked by an operator') === true, PATIENCE);
    expect(first).toMatch(/for [45] min \d\d s more$/);
    await eventually(headline, (text) => text !== first, PATIENCE);
    expect(await page.locator('.upstream .state').first().textContent()).toBe('blocked');
    expect(await page.title()).toBe('■ payments blocked – Tidegate');
    expect([429, 503]).toContain((await fetch(`${tidegate.url}/`)).status);

    await page.getByRole('button', { name: 'Unblock…' }).click();
    await page.getByRole('button', { name: 'Unblock payments' }).click();
    await eventually(headline, (text) => text?.startsWith('Blocked by an operator') === false, PATIENCE);
    await eventually(
      async () => (await fetch(`${tidegate.url}/`)).status,
      (status) => status === 200,
      PATIENCE,
    );
    expect(wrongs).toEqual([]);
  });

  test('resets a client from what is known of it', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    const listed = (await (await fetch(`${tidegate.adminUrl}/api/clients`)).json()) as ClientsPage;
    const key = String(listed.clients[0]?.key);
    await page.locator('#clients').getByRole('button', { name: key, exact: true }).click();
    const sheet = page.getByRole('dialog', { name: `Client ${key}` });
    await sheet.getByText('GET /').waitFor();
    await sheet.getByRole('button', { name: 'Reset this client…' }).click();
    await page.getByRole('button', { name: 'Reset it' }).click();
    await giveToken(page);
    await eventually(
      () => toast(page),
      (text) => text?.startsWith(`Client ${key} is reset.`) === true,
      PATIENCE,
    );
    await eventually(
      () => page.locator('#timeline .kind').allTextContents(),
      (kinds) => kinds.includes('reset'),
      PATIENCE,
    );
    expect(wrongs).toEqual([]);
  });

  test('is told that a token is wrong, and can have it forgotten', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Token…' }).click();
    const asked: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/api/config/validate')) asked.push(response.status());
    });
    await giveToken(page, 'open barley open');
    await page.getByText('That is not the token').waitFor();
    await giveToken(page);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(asked).toEqual([401, 422]); // let in, and looked at
    const kept = (): Promise<string[]> =>
      page.evaluate(() => [sessionStorage, localStorage].flatMap((store) => Object.values(store) as string[]));
    expect(await kept()).toEqual([TOKEN]);
    await page.getByRole('button', { name: 'Token…' }).click();
    await page.getByRole('button', { name: 'Forget it' }).click();
    expect(await kept()).toEqual([]);
    expect(wrongs).toEqual([]);
  });

  test('is told how to set a token where there is none', async () => {
    const tidegate = await start('');
    const { page } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Block…' }).click();
    await page.getByRole('button', { name: 'Block payments' }).click();
    const problem = page.getByRole('dialog').getByRole('alert');
    await eventually(
      () => problem.textContent(),
      (text) => text?.includes('admin.token') === true,
      PATIENCE,
    );
    expect((await upstreamOf(tidegate)).state).toBe('open');
  });

  test('does nothing by closing a question', async () => {
    const tidegate = await start();
    const { page } = await open(String(tidegate.adminUrl));
    for (const [name, close] of [
      ['Drain…', () => page.keyboard.press('Escape')],
      ['Block…', () => page.getByRole('button', { name: 'Cancel' }).click()],
      ['Drain…', () => page.keyboard.press('Enter')], // what cannot be taken back is not what Enter does
    ] as const) {
      await page.getByRole('button', { name }).click();
      await close();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
    }
    expect((await upstreamOf(tidegate)).state).toBe('open');
    expect((await fetch(`${tidegate.adminUrl}/readyz`)).status).toBe(200);
  });

  test('reads nothing on a port that is open to others before the token is given, and then everything', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--config', writeConfig('0.0.0.0:0', upstream.url)]);
    const { page, wrongs } = await open((await adminOf(running)).replace('0.0.0.0', '127.0.0.1'));
    await page.getByText('This Tidegate asks for its admin token.').waitFor();
    expect(await page.locator('.upstream').count()).toBe(0);
    await giveToken(page);
    await page.locator('.upstream').waitFor();
    expect(await page.locator('#connection').isVisible()).toBe(false);
    expect(wrongs).toEqual([]);
  });

  test('drains it, and sees that it is gone', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--config', writeConfig('127.0.0.1:0', upstream.url)]);
    const { page } = await open(await adminOf(running));
    await page.locator('.upstream').waitFor();
    await page.getByRole('button', { name: 'Drain…' }).click();
    await page.getByRole('button', { name: 'Drain and end it' }).click();
    await giveToken(page);
    await eventually(
      () => toast(page),
      (text) => text?.startsWith('It is draining.') === true,
      PATIENCE,
    );
    expect((await running.ended).code).toBe(0);
    await page.getByText('Connection lost').waitFor();
  });
});
