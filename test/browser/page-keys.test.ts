import type { ServerResponse } from 'node:http';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { KeysPage } from '../../src/admin/page/api-types.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { send } from '../support/clients/send.ts';
import { eventually, startTidegate } from '../support/proxy/tidegate.ts';
import { startRedis } from '../support/redis/redis-server.ts';
import { startHttpUpstream } from '../support/upstreams/http-upstream.ts';

const open = useBrowser();
const TOKEN = 'open sesame open';

/** Keys that begin with `lost` get no response, and those that begin with `held` get one later. @param state where keys are */
async function start(state = '') {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    if (body.toString().startsWith('held')) held.push(response);
    else if (body.toString().startsWith('lost')) response.destroy();
    else response.end('paid');
  });
  const tidegate = await startTidegate(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
${state}
upstreams: {till: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 1}}}
`);
  const pay = (key: string) =>
    send(tidegate.url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
  const idOf = async (key: string): Promise<string> => {
    const response = await fetch(`${tidegate.adminUrl}/api/keys?key=${key}`);
    return String(((await response.json()) as KeysPage).keys[0]?.id);
  };
  return { held, tidegate, pay, idOf, upstream };
}

function rowsOf(page: Page): Locator {
  return page.locator('#keys tbody tr');
}

async function waitForIds(page: Page, ids: readonly string[]): Promise<void> {
  await eventually(
    () => page.locator('#keys tbody [data-id]').allTextContents(),
    (shown) => shown.join() === ids.join(),
  );
}

describe('the keys table', () => {
  test('shows the key that the upstream got in place of that of the client', async () => {
    const upstream = await startHttpUpstream((_nth, response) => void response.end('paid'));
    const tidegate = await startTidegate(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
clients: {key: ["header:X-Client", ip]}
upstreams: {till: {url: "${upstream.url}", accounts: [{name: main, value: "Bearer of-main"}]}}`);
    await send(tidegate.url, '/pay', { method: 'POST', headers: ['X-Client', 'alice', 'Idempotency-Key', 'order-1'] });
    const response = await fetch(`${tidegate.adminUrl}/api/keys?key=order-1`);
    const sent = ((await response.json()) as KeysPage).keys[0]?.upstreamKey;
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByLabel('Search keys').fill('order-1');
    const cell = rowsOf(page).locator('[data-sent-key]');
    await eventually(
      () => cell.allTextContents(),
      (shown) => shown.length === 1,
    );
    expect(await cell.allTextContents()).toEqual([sent]);
    expect(sent).toMatch(/^[\da-f]{8}-[\da-f]{4}-8/);
    expect(wrongs).toEqual([]);
  });

  test('shows unresolved keys and those in progress, and finds others by state, key or id', async () => {
    const { held, tidegate, pay, idOf, upstream } = await start();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.getByText('No key is in this state.').waitFor();
    await pay('paid-1');
    await pay('lost-1');
    const pending = pay('held-1');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    const [paid, lost, busy] = [await idOf('paid-1'), await idOf('lost-1'), await idOf('held-1')];
    await waitForIds(page, [lost, busy]);
    expect(await page.locator('#keys [data-count]').textContent()).toBe('2 of 3 known, oldest first');
    const cells = await rowsOf(page).first().locator('td').allTextContents();
    const endpoint = new URL(upstream.url).host;
    expect(cells).toEqual([
      'unresolved',
      expect.stringMatching(/^\d\d:\d\d:\d\d$/),
      endpoint,
      '–',
      '0',
      '0',
      '0',
      'Forget…',
    ]);
    const inUse = page.getByRole('button', { name: `Forget key ${busy}` });
    expect([await inUse.isDisabled(), await inUse.getAttribute('title')]).toEqual([
      true,
      'The key is in use: it can be forgotten when its requests have ended.',
    ]);

    await page.getByLabel('Filter keys by state').selectOption('answered');
    await waitForIds(page, [paid]);
    await page.getByLabel('Filter keys by state').selectOption('in progress');
    await waitForIds(page, [busy]);
    const search = page.getByLabel('Search keys of all states');
    await search.fill('paid-1');
    await waitForIds(page, [paid]);
    await search.fill(lost.slice(0, 9));
    await waitForIds(page, [lost]);
    await search.fill('paid');
    await page.getByText('No key has this id, or is this key.').waitFor();
    await search.fill('');
    await waitForIds(page, [busy]);
    held[0]?.end('paid');
    await pending;
    await waitForIds(page, []);
    expect(await page.content()).not.toMatch(/lost-1|held-1/);
    expect(wrongs).toEqual([]);
  });

  test('forgets a key after a confirmation', async () => {
    const { tidegate, pay, idOf } = await start();
    await pay('lost-1');
    await pay('lost-2');
    const [first, second] = [await idOf('lost-1'), await idOf('lost-2')];
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await waitForIds(page, [first, second]);
    await page.getByRole('button', { name: `Forget key ${first}` }).click();
    const dialog = page.getByRole('dialog', { name: 'Forget this key' });
    expect(await dialog.textContent()).toContain('Its write may have taken effect: look it up at the upstream first.');
    await page.keyboard.press('Enter'); // does not confirm what cannot be undone
    await dialog.waitFor({ state: 'hidden' });
    expect(await idOf('lost-1')).toBe(first);

    await page.getByRole('button', { name: `Forget key ${first}` }).click();
    await dialog.getByRole('button', { name: 'Forget key' }).click();
    await page.getByLabel('Token', { exact: true }).fill(TOKEN);
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    expect(await page.locator('#toast').textContent()).toMatch(
      new RegExp(`^Key ${first} is forgotten. A request with`),
    );
    await page.mouse.move(0, 0); // rows under the pointer stay
    await waitForIds(page, [second]);
    await eventually(
      () => page.locator('#timeline .text').allTextContents(),
      ([text]) => text === `till: idempotency key ${first} forgotten, by 127.0.0.1`,
    );
    expect(await idOf('lost-1')).toBe('undefined');
    expect(wrongs).toEqual([]);
  });

  test('shows and forgets keys that replicas share over Redis, and says when Redis does not respond', async () => {
    const redis = await startRedis();
    const { tidegate, pay, idOf } = await start(`state: {store: redis, url: "${redis.url}", timeout: 240ms}`);
    await pay('paid-1');
    await pay('lost-1');
    await pay('lost-2');
    const [first, second] = [await idOf('lost-1'), await idOf('lost-2')];
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await waitForIds(page, [first, second]);
    const count = page.locator('#keys [data-count]');
    expect(await count.textContent()).toBe('2 found, oldest first');
    await page.getByLabel('Search keys of all states').fill('paid-1');
    await waitForIds(page, [await idOf('paid-1')]);
    expect(await count.textContent()).toBe('1 found, oldest first');
    await page.getByLabel('Search keys of all states').fill('');
    await page.getByLabel('Filter keys by state').selectOption('');
    await eventually(
      () => count.textContent(),
      (text) => text === '3 of 3 known, oldest first',
    );
    await page.getByRole('button', { name: `Forget key ${first}` }).click();
    await page.getByRole('dialog', { name: 'Forget this key' }).getByRole('button', { name: 'Forget key' }).click();
    await page.getByLabel('Token', { exact: true }).fill(TOKEN);
    await page.keyboard.press('Enter');
    await eventually(
      () => count.textContent(),
      (text) => text === '2 of 2 known, oldest first',
    );
    expect(await idOf('lost-1')).toBe('undefined');
    await redis.kill();
    await eventually(
      () => count.textContent(),
      (text) => text?.startsWith('Redis, which has the keys of all replicas, does not respond: ') === true,
    );
    expect(wrongs).toEqual([]);
  });
});
