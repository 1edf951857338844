/** The deliveries on the page: listed, opened, retried and canceled, with their messages on demand. */
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { DeliveryRow } from '../../src/admin/page/api-types.ts';
import { TOKEN } from '../support/admin/admin-api.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { startShop } from '../support/deliveries/admin-shop.ts';
import { eventually, startTidegate } from '../support/proxy/tidegate.ts';

const open = useBrowser();

const like = (pattern: RegExp): string => expect.stringMatching(pattern) as string;

const rowsOf = (page: Page): Locator => page.locator('#deliveries tbody tr');

/** Until the table shows the deliveries with these ids in this order. */
async function waitForIds(page: Page, ids: readonly string[]): Promise<void> {
  await eventually(
    () => rowsOf(page).evaluateAll((rows) => rows.map((row) => row.querySelector('button')?.ariaLabel ?? '')),
    (shown) => shown.map((label) => label.replace(/.* /, '')).join() === ids.join(),
  );
}

async function enterToken(page: Page): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(TOKEN);
  await page.keyboard.press('Enter');
}

/** Until an attempt has failed, and the next one is an hour away. */
async function untilPostponed(show: (id: string) => Promise<DeliveryRow>, id: string): Promise<void> {
  await eventually(
    () => show(id),
    ({ state, attempts }) => state === 'waiting' && attempts === 1,
  );
}

test('lists deliveries, the newest first, by state and route, with totals', async () => {
  const { held, gate, notify, show, until } = await startShop();
  const { page, wrongs } = await open(String(gate.adminUrl));
  await page.getByText('No deliveries are stored.').waitFor();
  const dead = await notify('dead-1', '/hooks', ['X-Event', 'evt_1']);
  await until(dead, 'dead');
  const delivered = await notify('paid-2');
  await until(delivered, 'delivered');
  const waiting = await notify('dead-3', '/slow');
  await untilPostponed(show, waiting);
  const sending = await notify('held-4', '/slow');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  await waitForIds(page, [sending, waiting, delivered, dead]);
  await eventually(
    () => page.locator('#deliveries [data-totals] dd').allTextContents(),
    (totals) => totals.slice(0, 5).join() === '1,1,1,1,0' && /^\d+ B$/.test(totals[5] ?? '') && totals[6] !== '–',
  );
  expect(await page.locator('#deliveries [data-count]').textContent()).toBe('newest 4');
  const clock = like(/^\d\d:\d\d:\d\d$/);
  expect(await rowsOf(page).nth(3).locator('td, th').allTextContents()).toEqual([
    ...[clock, '/hooks', 'dead', '2', clock, '400', 'evt_1'],
  ]);
  expect(await rowsOf(page).nth(1).locator('td, th').allTextContents()).toEqual([
    ...[clock, '/slow', 'waiting', '1', like(/^in \d+ min/), '400', '–'],
  ]);
  const notice = page.locator('#notices li');
  await eventually(
    () => notice.allTextContents(),
    ([text]) => text?.startsWith('1 stored delivery is dead: no more attempts are made.') === true,
  );

  await page.getByLabel('Filter deliveries by state').selectOption('open');
  await waitForIds(page, [sending, waiting]);
  await page.getByLabel('Filter deliveries by state').selectOption('');
  const route = page.getByLabel('Filter deliveries by the whole name of their route');
  await route.fill('/hooks');
  await waitForIds(page, [delivered, dead]);
  await route.fill('/nowhere');
  await page.getByText('No delivery is in this state and of this route.').waitFor();
  await route.fill('');
  await waitForIds(page, [sending, waiting, delivered, dead]);
  const suggested = page.locator('#delivery-routes option');
  expect((await suggested.allTextContents()).toSorted()).toEqual(['/hooks', '/slow']);
  held[0]?.end();
  await until(sending, 'delivered');
  await eventually(
    () => rowsOf(page).first().locator('[data-state]').textContent(),
    (text) => text === 'delivered',
  );
  expect(await page.content()).not.toMatch(/dead-1|paid-2|dead-3|held-4/);
  expect(wrongs).toEqual([]);
});

test('goes to older pages and back, with the keyboard', async () => {
  const { gate, notify, until } = await startShop();
  const ids: string[] = [];
  for (let n = 0; n < 53; n += 1) ids.unshift(await notify(`paid-${n}`));
  await until(ids[0] ?? '', 'delivered');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForIds(page, ids.slice(0, 50));
  const [newer, older] = [page.getByRole('button', { name: 'Newer' }), page.getByRole('button', { name: 'Older' })];
  expect([await newer.isDisabled(), await older.isDisabled()]).toEqual([true, false]);
  await older.focus();
  await page.keyboard.press('Enter');
  await waitForIds(page, ids.slice(50));
  expect(await page.locator('#deliveries [data-count]').textContent()).toBe('3 older, page 2');
  expect([await newer.isDisabled(), await older.isDisabled()]).toEqual([false, true]);
  // The focus does not stay on a button that is disabled.
  await page.keyboard.press('Enter');
  await waitForIds(page, ids.slice(0, 50));
  expect(await older.evaluate((each) => each === document.activeElement)).toBe(true);
  expect(wrongs).toEqual([]);
});

test('opens the story of a delivery, and retries it after a confirmation', async () => {
  const { repair, gate, notify, until } = await startShop();
  const id = await notify('dead-1', '/hooks', ['X-Event', 'evt_1']);
  await until(id, 'dead');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForIds(page, [id]);
  await rowsOf(page).getByRole('button').focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: `Delivery ${id}` });
  await dialog.getByText('Dead after 2 attempts: no more are made, unless it is retried.').waitFor();
  const facts = await dialog.locator('[data-facts] > div').allTextContents();
  expect(facts).toEqual([
    ...['event idevt_1', 'route/hooks', 'upstreamshop'],
    ...[like(/^accepted\d\d:/), 'attempts2', like(/^last attempt\d\d:.*, took /)],
    ...['last status400', like(/^ended\d\d:/), 'order key–', like(/^client[0-9a-f]+$/)],
  ]);
  const cancel = dialog.getByRole('button', { name: 'Cancel delivery…' });
  expect([await cancel.isDisabled(), await cancel.getAttribute('title')]).toEqual([
    true,
    'It is dead: no more attempts are made.',
  ]);
  repair();
  await dialog.getByRole('button', { name: 'Retry…' }).click();
  const question = page.getByRole('dialog', { name: 'Retry this delivery' });
  expect(await question.textContent()).toContain('it gets it once more, with the same webhook-id.');
  await question.getByRole('button', { name: 'Retry delivery' }).click();
  await enterToken(page);
  await question.waitFor({ state: 'hidden' });
  expect(await page.locator('#toast').textContent()).toMatch(new RegExp(`^Delivery ${id} is retried. It is due now`));
  await until(id, 'delivered');
  await dialog.getByText(/^Delivered .* after it was accepted, with 1 attempt\.$/).waitFor();
  const retry = dialog.getByRole('button', { name: 'Retry…' });
  expect([await retry.isDisabled(), await retry.getAttribute('title')]).toEqual([true, 'It is delivered.']);
  await page.keyboard.press('Escape');
  expect(
    await rowsOf(page)
      .getByRole('button')
      .evaluate((each) => each === document.activeElement),
  ).toBe(true);
  expect(wrongs).toEqual([]);
});

test('cancels a delivery that waits, and not with Enter alone', async () => {
  const { gate, notify, show, until } = await startShop();
  const id = await notify('dead-1', '/slow');
  await untilPostponed(show, id);
  const { page, wrongs } = await open(String(gate.adminUrl));
  await rowsOf(page).getByRole('button').click();
  const dialog = page.getByRole('dialog', { name: `Delivery ${id}` });
  await dialog.getByText(/^Attempt 2 begins in \d+ min/).waitFor();
  const question = page.getByRole('dialog', { name: 'Cancel this delivery' });
  await dialog.getByRole('button', { name: 'Cancel delivery…' }).click();
  await page.keyboard.press('Enter');
  await question.waitFor({ state: 'hidden' });
  expect((await show(id)).state).toBe('waiting');
  await dialog.getByRole('button', { name: 'Cancel delivery…' }).click();
  await question.getByRole('button', { name: 'Cancel delivery' }).click();
  await enterToken(page);
  await until(id, 'canceled');
  await dialog.getByText('Canceled by an operator after 1 attempt.').waitFor();
  await page.keyboard.press('Escape');
  await eventually(
    () => page.locator('#timeline .text').allTextContents(),
    ([text]) => text?.includes(`delivery ${id} of /slow canceled`) === true,
  );
  expect(wrongs).toEqual([]);
});

test('shows a message only on demand, with the token, and forgets it when the delivery is closed', async () => {
  const { gate, notify, until } = await startShop();
  const text = await notify('{"paid": "süß"}', '/hooks/a?x=1', ['X-Secret', 'hidden-header']);
  const bytes = await notify(Buffer.from([0xff, 0, 1]));
  const empty = await notify('');
  const long = await notify('x'.repeat(100_001));
  for (const id of [text, bytes, empty, long]) await until(id, 'delivered');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForIds(page, [long, empty, bytes, text]);
  const dialog = page.getByRole('dialog', { name: 'Delivery' });
  const message = dialog.locator('[data-message]');
  const button = dialog.getByRole('button', { name: /(Show|Hide) message/ });
  await rowsOf(page).nth(3).getByRole('button').click();
  expect(await message.isVisible()).toBe(false);
  await button.click();
  await page.getByRole('dialog', { name: 'Admin token' }).getByRole('button', { name: 'Cancel' }).click();
  await dialog.getByText('Nothing is shown: this requires the admin token.').waitFor();
  expect(await page.content()).not.toContain('hidden-header');
  await button.click();
  await enterToken(page);
  await message.waitFor();
  expect(await message.locator('[data-target]').textContent()).toBe('POST /hooks/a?x=1 from 127.0.0.1');
  expect(await message.locator('pre').textContent()).toBe('{"paid": "süß"}');
  expect(await message.locator('[data-headers] tr').allTextContents()).toContain('X-Secrethidden-header');
  expect([await button.textContent(), await button.getAttribute('aria-expanded')]).toEqual(['Hide message', 'true']);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  expect(await page.content()).not.toMatch(/hidden-header|süß/);

  await rowsOf(page).nth(2).getByRole('button').click();
  await button.click();
  await message.waitFor();
  expect([await message.locator('[data-note]').textContent(), await message.locator('pre').textContent()]).toEqual([
    'The body is not UTF-8. In base64:',
    '/wAB',
  ]);
  await button.click();
  expect(await message.isVisible()).toBe(false);
  await page.keyboard.press('Escape');
  await rowsOf(page).nth(1).getByRole('button').click();
  await button.click();
  await message.getByText('The body is empty.').waitFor();
  expect(await message.locator('pre').isVisible()).toBe(false);
  await page.keyboard.press('Escape');
  await rowsOf(page).first().getByRole('button').click();
  await button.click();
  await message.getByText('Body, the first 100000 of 100001 characters:').waitFor();
  expect((await message.locator('pre').textContent())?.length).toBe(100_000);
  expect(wrongs).toEqual([]);
});

test('warns before it retries a delivery of unknown outcome', async () => {
  const [at, id] = [new Date().toISOString(), 'an-id'];
  const status = statusOf({ at, deliveries: { ...NO_DELIVERIES, counts: { ...NO_DELIVERIES.counts, unknown: 1 } } });
  const delivery = deliveryOf({ id, state: 'unknown', attempts: 1, endedAt: at });
  const { url } = await servePageEvents([['status', { status, clients: { total: 0, rows: [] } }]], [delivery]);
  const { page, wrongs } = await open(url);
  const posted: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') posted.push(request.url());
  });
  await rowsOf(page).getByRole('button').click();
  await page.getByRole('button', { name: 'Retry…' }).click();
  const question = page.getByRole('dialog', { name: 'Retry this delivery' });
  expect(await question.textContent()).toContain('It may have taken effect: look it up at the upstream first.');
  await page.keyboard.press('Enter'); // does not confirm what may take effect twice
  await question.waitFor({ state: 'hidden' });
  expect(posted).toEqual([]);
  expect(wrongs).toEqual([]);
});

test('goes one page further however often a button is pressed before the page is shown', async () => {
  const { gate, notify, until } = await startShop();
  const id = await notify('paid-1');
  await until(id, 'delivered');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForIds(page, [id]);
  const asked: (string | null)[] = [];
  const released = Promise.withResolvers<undefined>();
  await page.route('**/api/deliveries?*', async (route) => {
    const after = new URL(route.request().url()).searchParams.get('after');
    asked.push(after);
    if (after !== null) await released.promise;
    const response = await route.fetch();
    await route.fulfill({ json: { ...((await response.json()) as object), next: id } });
  });
  await page.getByLabel('Filter deliveries by state').selectOption('delivered');
  const older = page.getByRole('button', { name: 'Older' });
  await older.click();
  await eventually(
    () => asked.includes(id),
    (isAsked) => isAsked,
  );
  await older.click();
  released.resolve(undefined);
  await eventually(
    () => page.locator('#deliveries [data-count]').textContent(),
    (text) => text === '0 older, page 2',
  );
  await page.unrouteAll({ behavior: 'wait' });
  expect(wrongs).toEqual([]);
});

test('says that a delivery has expired, and offers no action for it', async () => {
  const { gate, notify, until } = await startShop();
  const id = await notify('dead-1');
  await until(id, 'dead');
  const { page, wrongs } = await open(String(gate.adminUrl));
  const problem = { status: 404, contentType: 'application/problem+json', body: '{"detail": "No such delivery."}' };
  await page.route(`**/api/deliveries/${id}`, (route) => route.fulfill(problem));
  await rowsOf(page).getByRole('button').click();
  const dialog = page.getByRole('dialog', { name: `Delivery ${id}` });
  await dialog.getByRole('alert').getByText('The delivery is not stored any more.').waitFor();
  for (const name of ['Show message', 'Retry…', 'Cancel delivery…']) {
    expect(await dialog.getByRole('button', { name }).isDisabled()).toBe(true);
  }
  expect(wrongs).toEqual([]);
});

test('does not appear in a process that stores no deliveries, nor asks for them', async () => {
  const gate = await startTidegate('admin: {listen: "127.0.0.1:0"}\nupstreams: {shop: {url: "http://127.0.0.1:1"}}\n');
  const { page, wrongs } = await open('about:blank');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(String(gate.adminUrl));
  await page.locator('.upstream').waitFor();
  await eventually(
    () => asked,
    (paths) => paths.includes('/api/keys'),
  );
  expect([await page.locator('#deliveries').isVisible(), asked.includes('/api/deliveries')]).toEqual([false, false]);
  expect(wrongs.filter((wrong) => !wrong.startsWith('request: '))).toEqual([]);
});
