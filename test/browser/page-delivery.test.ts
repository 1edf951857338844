/** A delivery that is opened on the page: its story, its actions, and its message on demand. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { TOKEN } from '../support/admin/admin-api.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { deliveryOf, NO_DELIVERIES, statusOf } from '../support/admin/status-builders.ts';
import { startShop } from '../support/deliveries/admin-shop.ts';
import { deliveryRows, untilPostponed, waitForDeliveries } from './deliveries-on-page.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const open = useBrowser();

const like = (pattern: RegExp): string => expect.stringMatching(pattern) as string;

async function enterToken(page: Page): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(TOKEN);
  await page.keyboard.press('Enter');
}

test('opens the story of a delivery, and retries it after a confirmation', async () => {
  const { repair, gate, notify, until } = await startShop();
  const id = await notify('dead-1', '/hooks', ['X-Event', 'evt_1']);
  await until(id, 'dead');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForDeliveries(page, [id]);
  await deliveryRows(page).getByRole('button').focus();
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
    await deliveryRows(page)
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
  await deliveryRows(page).getByRole('button').click();
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
  await waitForDeliveries(page, [long, empty, bytes, text]);
  const dialog = page.getByRole('dialog', { name: 'Delivery' });
  const message = dialog.locator('[data-message]');
  const button = dialog.getByRole('button', { name: /(Show|Hide) message/ });
  await deliveryRows(page).nth(3).getByRole('button').click();
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
  // The browser hides a dialog before it dispatches the close event.
  await expect.poll(() => page.content()).not.toMatch(/hidden-header|süß/);

  await deliveryRows(page).nth(2).getByRole('button').click();
  await button.click();
  await message.waitFor();
  expect([await message.locator('[data-note]').textContent(), await message.locator('pre').textContent()]).toEqual([
    'The body is not UTF-8. In base64:',
    '/wAB',
  ]);
  await button.click();
  expect(await message.isVisible()).toBe(false);
  await page.keyboard.press('Escape');
  await deliveryRows(page).nth(1).getByRole('button').click();
  await button.click();
  await message.getByText('The body is empty.').waitFor();
  expect(await message.locator('pre').isVisible()).toBe(false);
  await page.keyboard.press('Escape');
  await deliveryRows(page).first().getByRole('button').click();
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
  await deliveryRows(page).getByRole('button').click();
  await page.getByRole('button', { name: 'Retry…' }).click();
  const question = page.getByRole('dialog', { name: 'Retry this delivery' });
  expect(await question.textContent()).toContain('It may have taken effect: look it up at the upstream first.');
  await page.keyboard.press('Enter'); // does not confirm what may take effect twice
  await question.waitFor({ state: 'hidden' });
  expect(posted).toEqual([]);
  expect(wrongs).toEqual([]);
});

test('says that a delivery has expired, and offers no action for it', async () => {
  const { gate, notify, until } = await startShop();
  const id = await notify('dead-1');
  await until(id, 'dead');
  const { page, wrongs } = await open(String(gate.adminUrl));
  const problem = { status: 404, contentType: 'application/problem+json', body: '{"detail": "No such delivery."}' };
  await page.route(`**/api/deliveries/${id}`, (route) => route.fulfill(problem));
  await deliveryRows(page).getByRole('button').click();
  const dialog = page.getByRole('dialog', { name: `Delivery ${id}` });
  await dialog.getByRole('alert').getByText('The delivery is no longer stored.').waitFor();
  for (const name of ['Show message', 'Retry…', 'Cancel delivery…']) {
    expect(await dialog.getByRole('button', { name }).isDisabled()).toBe(true);
  }
  expect(wrongs).toEqual([]);
});
