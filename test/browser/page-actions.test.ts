import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ClientsPage, ProcessStatus, UpstreamStatus } from '../../src/admin/page/api-types.ts';
import { startDemo } from '../../src/cli/demo-command.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { writeConfigFile } from '../support/proxy/config-file.ts';
import type { RunningProcess } from '../support/proxy/process.ts';
import { startProcess } from '../support/proxy/process.ts';
import type { Tidegate } from '../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const TOKEN = 'open sesame open';
const PATIENCE = 30_000;

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
  const [upstream] = ((await response.json()) as ProcessStatus).upstreams;
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

async function adminOf({ log }: RunningProcess): Promise<string> {
  const lines = await eventually(log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  return String(lines.find(({ msg }) => msg === 'listening')?.['admin']);
}

function toast(page: Page): Promise<string | null> {
  return page.locator('#toast').textContent();
}

test('the demo prints the token that its actions need', async () => {
  const printed: string[] = [];
  const exitListeners = process.listeners('exit');
  const demo = await startDemo({ listen: '127.0.0.1:0', admin: '127.0.0.1:0' }, 'test', (line) => printed.push(line));
  if (demo.kind === 'failed') throw new Error(demo.message);
  onTestFinished(async () => {
    await demo.stop();
    // Its log is written until the process ends, and this process goes on with other tests.
    for (const listener of process.listeners('exit')) {
      if (!exitListeners.includes(listener)) process.off('exit', listener);
    }
  });
  const { page } = await open(String(demo.app.adminUrl));
  await page.getByRole('button', { name: 'Pin a rate…' }).click();
  await page.getByRole('button', { name: 'Pin rate' }).click();
  const token = /: ([0-9a-f]{24})$/m.exec(printed.join('\n'))?.[1];
  expect(token).toBe(demo.token);
  await giveToken(page, token);
  await page
    .getByText(/pinned at .* by an operator/)
    .first()
    .waitFor({ timeout: PATIENCE });
});

describe('an operator', () => {
  test('pins and releases a rate, entering the token once', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Pin a rate…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Pin the rate of payments' });
    await dialog.getByRole('textbox').fill('fast');
    await dialog.getByRole('button', { name: 'Pin rate' }).click();
    await dialog.getByText('Enter a rate such as 50/s').waitFor();
    await dialog.getByRole('textbox').fill('30/m');
    await dialog.getByRole('button', { name: 'Pin rate' }).click();
    await giveToken(page);
    await dialog.waitFor({ state: 'hidden' });
    expect(await toast(page)).toContain('The rate of payments is pinned at 30/m.');
    expect((await upstreamOf(tidegate)).pinned).toBe(0.5);
    await page.getByText('pinned at 0.5/s by an operator').first().waitFor({ timeout: PATIENCE });

    await page.getByRole('button', { name: 'Release…' }).click();
    await page.getByRole('button', { name: 'Release rate' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect((await upstreamOf(tidegate)).pinned).toBeNull();
    await eventually(
      () => page.locator('#timeline .kind').allTextContents(),
      (kinds) => kinds.includes('pin') && kinds.includes('unpin'),
    );
    expect(wrongs).toEqual([]);
  });

  test('blocks an upstream for five minutes, sees the countdown, and unblocks it', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Block…' }).click();
    await page.getByLabel('Duration').selectOption('for 5 minutes');
    await page.getByRole('button', { name: 'Block payments' }).click();
    await giveToken(page);
    const headline = (): Promise<string | null> => page.locator('.upstream [data-headline]').textContent();
    const first = await eventually(headline, (text) => text?.startsWith('Blocked by an operator') === true);
    expect(first).toMatch(/for another [45] min \d\d s$/);
    await eventually(headline, (text) => text !== first);
    expect(await page.locator('.upstream .state').first().textContent()).toBe('blocked');
    expect(await page.title()).toBe('■ payments blocked – Tidegate');
    expect([429, 503]).toContain((await fetch(`${tidegate.url}/`)).status);

    await page.getByRole('button', { name: 'Unblock…' }).click();
    await page.getByRole('button', { name: 'Unblock payments' }).click();
    await eventually(headline, (text) => text?.startsWith('Blocked by an operator') === false);
    await eventually(
      async () => (await fetch(`${tidegate.url}/`)).status,
      (status) => status === 200,
    );
    expect(wrongs).toEqual([]);
  });

  test('resets a client from its details', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    const listed = (await (await fetch(`${tidegate.adminUrl}/api/clients`)).json()) as ClientsPage;
    const key = String(listed.clients[0]?.key);
    await page.locator('#clients').getByRole('button', { name: key, exact: true }).click();
    const sheet = page.getByRole('dialog', { name: `Client ${key}` });
    await sheet.getByText('GET /').waitFor();
    await sheet.getByRole('button', { name: 'Reset this client…' }).click();
    await page.getByRole('button', { name: 'Reset client', exact: true }).click();
    await giveToken(page);
    await eventually(
      () => toast(page),
      (text) => text?.startsWith(`Client ${key} is reset.`) === true,
    );
    await eventually(
      () => page.locator('#timeline .kind').allTextContents(),
      (kinds) => kinds.includes('reset'),
    );
    expect(wrongs).toEqual([]);
  });

  test('sees that a token is wrong, and can make the page forget it', async () => {
    const tidegate = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByRole('button', { name: 'Token…' }).click();
    const asked: number[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('/api/config/validate')) asked.push(response.status());
    });
    await giveToken(page, 'open barley open');
    await page.getByText('The token was not accepted.').waitFor();
    await giveToken(page);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(asked).toEqual([401, 422]); // the second one is authorized; the empty configuration is invalid
    const kept = (): Promise<string[]> =>
      page.evaluate(() => [sessionStorage, localStorage].flatMap((store) => Object.values(store) as string[]));
    expect(await kept()).toEqual([TOKEN]);
    await page.getByRole('button', { name: 'Token…' }).click();
    await page.getByRole('button', { name: 'Forget token' }).click();
    expect(await kept()).toEqual([]);
    expect(wrongs).toEqual([]);
  });

  test('sees no enabled action and why, when no token is configured', async () => {
    const tidegate = await start('');
    const { page } = await open(String(tidegate.adminUrl));
    const reason = 'Actions are disabled: set admin.token in the configuration.';
    for (const name of ['Pin a rate…', 'Block…', 'Drain…', 'Token…', /^Reset client/]) {
      const button = page.getByRole('button', { name });
      await button.waitFor();
      expect([await button.isDisabled(), await button.getAttribute('title')]).toEqual([true, reason]);
    }
    expect(await page.locator('[data-fact=actions]').textContent()).toBe('disabled: no admin.token');
    expect((await upstreamOf(tidegate)).state).toBe('open');
  });

  test('changes nothing by closing a dialog', async () => {
    const tidegate = await start();
    const { page } = await open(String(tidegate.adminUrl));
    for (const [name, close] of [
      ['Drain…', () => page.keyboard.press('Escape')],
      ['Block…', () => page.getByRole('button', { name: 'Cancel' }).click()],
      ['Drain…', () => page.keyboard.press('Enter')], // Enter does not confirm an irreversible action
    ] as const) {
      await page.getByRole('button', { name }).click();
      await close();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
    }
    expect((await upstreamOf(tidegate)).state).toBe('open');
    expect((await fetch(`${tidegate.adminUrl}/readyz`)).status).toBe(200);
  });

  test('sees data on a port open to other machines only after entering the token', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--config', writeConfig('0.0.0.0:0', upstream.url)]);
    const { page, wrongs } = await open((await adminOf(running)).replace('0.0.0.0', '127.0.0.1'));
    await page.getByText('The admin port requires a token.').waitFor();
    expect(await page.locator('.upstream').count()).toBe(0);
    await giveToken(page);
    await page.locator('.upstream').waitFor();
    expect(await page.locator('#connection').isVisible()).toBe(false);
    expect(wrongs).toEqual([]);
  });

  test('drains Tidegate, and sees that the connection is lost', async () => {
    const upstream = await startUpstream();
    const running = startProcess(['--config', writeConfig('127.0.0.1:0', upstream.url)]);
    const { page } = await open(await adminOf(running));
    await page.locator('.upstream').waitFor();
    await page.getByRole('button', { name: 'Drain…' }).click();
    await page.getByRole('button', { name: 'Drain and stop' }).click();
    await giveToken(page);
    await eventually(
      () => toast(page),
      (text) => text?.startsWith('Tidegate is draining.') === true,
    );
    expect((await running.ended).code).toBe(0);
    await page.getByText('Connection lost').waitFor();
  });
});
