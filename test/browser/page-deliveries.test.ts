/** The table of deliveries on the page: its rows, filters, totals and pages. */
import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { startShop } from '../support/deliveries/admin-shop.ts';
import { deliveryRows, untilPostponed, waitForDeliveries } from './deliveries-on-page.ts';
import { eventually, startTidegate } from '../support/proxy/tidegate.ts';

const open = useBrowser();

test('lists deliveries, the newest first, by state and route, with totals', async () => {
  const { repair, gate, api, notify, show, until } = await startShop();
  const { page, wrongs } = await open(String(gate.adminUrl));
  await page.getByText('No deliveries are stored.').waitFor();
  const dead = await notify('dead-1', '/hooks', ['X-Event', 'evt_1']);
  await until(dead, 'dead');
  const delivered = await notify('paid-2');
  await until(delivered, 'delivered');
  const waiting = await notify('dead-3', '/slow');
  await untilPostponed(show, waiting);
  await waitForDeliveries(page, [waiting, delivered, dead]);
  // The page may have read it during the attempt.
  await eventually(
    () => deliveryRows(page).first().locator('td, th').allTextContents(),
    (cells) => /^\d\d:\d\d:\d\d,\/slow,waiting,1,in (1 h|\d+ min).*,400,–$/.test(cells.join()),
  );
  await eventually(
    () => page.locator('#deliveries [data-totals] dd').allTextContents(),
    (totals) => totals.slice(0, 6).join() === '1,0,1,1,0,0' && /^\d+ B$/.test(totals[6] ?? '') && totals[7] !== '–',
  );
  expect(await page.locator('#deliveries [data-count]').textContent()).toBe('newest 3');
  const clock = expect.stringMatching(/^\d\d:\d\d:\d\d$/) as string;
  expect(await deliveryRows(page).nth(2).locator('td, th').allTextContents()).toEqual([
    ...[clock, '/hooks', 'dead', '2', clock, '400', 'evt_1'],
  ]);
  const notice = page.locator('#notices li');
  await eventually(
    () => notice.allTextContents(),
    ([text]) => text?.startsWith('1 stored delivery is dead: no more attempts are made.') === true,
  );

  await page.getByLabel('Filter deliveries by state').selectOption('open');
  await waitForDeliveries(page, [waiting]);
  await page.getByLabel('Filter deliveries by state').selectOption('');
  const route = page.getByLabel('Filter deliveries by the whole name of their route');
  await route.fill('/hooks');
  await waitForDeliveries(page, [delivered, dead]);
  await route.fill('/nowhere');
  await page.getByText('No delivery is in this state and of this route.').waitFor();
  await route.fill('');
  await waitForDeliveries(page, [waiting, delivered, dead]);
  const suggested = page.locator('#delivery-routes option');
  expect((await suggested.allTextContents()).toSorted()).toEqual(['/hooks', '/slow']);
  repair();
  await api.post(`/api/deliveries/${waiting}/retry`);
  await until(waiting, 'delivered');
  await eventually(
    () => deliveryRows(page).first().locator('[data-state]').textContent(),
    (text) => text === 'delivered',
  );
  expect(await page.content()).not.toMatch(/dead-1|paid-2|dead-3/);
  expect(wrongs).toEqual([]);
});

test('goes to older pages and back, with the keyboard', async () => {
  const { gate, notify, until } = await startShop();
  const ids: string[] = [];
  for (let n = 0; n < 53; n += 1) ids.unshift(await notify(`paid-${n}`));
  await until(ids[0] ?? '', 'delivered');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForDeliveries(page, ids.slice(0, 50));
  const [newer, older] = [page.getByRole('button', { name: 'Newer' }), page.getByRole('button', { name: 'Older' })];
  expect([await newer.isDisabled(), await older.isDisabled()]).toEqual([true, false]);
  await older.focus();
  await page.keyboard.press('Enter');
  await waitForDeliveries(page, ids.slice(50));
  expect(await page.locator('#deliveries [data-count]').textContent()).toBe('3 older, page 2');
  expect([await newer.isDisabled(), await older.isDisabled()]).toEqual([false, true]);
  // The focus does not stay on a button that is disabled.
  await page.keyboard.press('Enter');
  await waitForDeliveries(page, ids.slice(0, 50));
  expect(await older.evaluate((each) => each === document.activeElement)).toBe(true);
  expect(wrongs).toEqual([]);
});

test('goes one page further however often a button is pressed before the page is shown', async () => {
  const { gate, notify, until } = await startShop();
  const id = await notify('paid-1');
  await until(id, 'delivered');
  const { page, wrongs } = await open(String(gate.adminUrl));
  await waitForDeliveries(page, [id]);
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
