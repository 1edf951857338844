/** The deliveries on the page, as a browser shows them. */
import type { Locator, Page } from 'playwright-core';
import type { DeliveryRow } from '../../src/admin/page/api-types.ts';
import { eventually } from '../support/proxy/tidegate.ts';

export const deliveryRows = (page: Page): Locator => page.locator('#deliveries tbody tr');

/** Until the table shows the deliveries with these ids in this order. */
export async function waitForDeliveries(page: Page, ids: readonly string[]): Promise<void> {
  await eventually(
    () => deliveryRows(page).evaluateAll((rows) => rows.map((row) => row.querySelector('button')?.ariaLabel ?? '')),
    (shown) => shown.map((label) => label.replace(/.* /, '')).join() === ids.join(),
  );
}

/** Until an attempt has failed, and the next one is later. */
export async function untilPostponed(show: (id: string) => Promise<DeliveryRow>, id: string): Promise<void> {
  await eventually(
    () => show(id),
    ({ state, attempts }) => state === 'waiting' && attempts === 1,
  );
}
