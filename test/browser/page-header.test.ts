import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { clientOf, statusOf, upstreamOf } from '../support/admin/status-builders.ts';

const open = useBrowser();

function eventOf(change: Parameters<typeof statusOf>[0]): PageEvent {
  const at = new Date().toISOString();
  const rows = [clientOf({ state: 'backoff', allowance: 0.25 })];
  return ['status', { status: statusOf({ at, ...change }), clients: { total: 1, rows } }];
}

function colourOf(page: Page, selector: string): Promise<string> {
  return page
    .locator(selector)
    .first()
    .evaluate((element) => getComputedStyle(element).color);
}

/** Counts since the start of an upstream that failed once, and what happens now. */
function requestsOf(failedPerSecond: number) {
  const { requests } = statusOf();
  return { requests: { ...requests, failedPerSecond, outcomes: { ...requests.outcomes, upstream_error: 16 } } };
}

describe('the header', () => {
  test('colours present failures, and not the counts since the start', async () => {
    const { url, send } = await servePageEvents([eventOf(requestsOf(1.5))]);
    const { page } = await open(url);
    const failed = page.locator('[data-total=failed]', { hasText: '1.5/s' });
    await failed.waitFor();
    const neutral = await colourOf(page, '[data-total=perSecond]');
    expect(await colourOf(page, '[data-total=failed]')).not.toBe(neutral);
    const count = page.locator('#outcomes li', { hasText: '16 upstream error' });
    await count.waitFor();
    const colour = (): Promise<string> => count.evaluate((element) => getComputedStyle(element).color);
    expect(await colour()).toBe(neutral);
    send(eventOf(requestsOf(0)));
    await page.locator('[data-total=failed]', { hasText: /^0\/s$/ }).waitFor();
    expect(await colourOf(page, '[data-total=failed]')).toBe(neutral);
    expect(await colour()).toBe(neutral);
  });

  test('has no red button that cannot be used', async () => {
    const waiting = await open((await servePageEvents([])).url);
    const drain = (page: Page) => page.getByRole('button', { name: 'Drain…' });
    expect(await drain(waiting.page).isDisabled()).toBe(true);
    const reason = 'Actions need admin.token.';
    const { page } = await open((await servePageEvents([eventOf({ actions: { allowed: false, reason } })])).url);
    await page.locator('#clients tbody tr').waitFor();
    expect(await drain(page).isDisabled()).toBe(true);
    expect(await colourOf(page, '#drain')).toBe(await colourOf(page, '#theme'));
    const allowed = await open((await servePageEvents([eventOf({})])).url);
    await allowed.page.locator('#clients tbody tr').waitFor();
    expect(await drain(allowed.page).isEnabled()).toBe(true);
    expect(await colourOf(allowed.page, '#drain')).not.toBe(await colourOf(allowed.page, '#theme'));
  });
});

test('explains the mode, the states and the share, also to screen readers', async () => {
  const { page } = await open(
    (await servePageEvents([eventOf({ upstreams: [upstreamOf({ state: 'backoff' })] })])).url,
  );
  await page.locator('#clients tbody tr').waitFor();
  expect(await page.locator('[data-fact=mode]').textContent()).toBe('enforce (limits apply)');
  const meaningOfLimit = 'the rate was cut, and no request sent since has been accepted yet';
  expect(await page.locator('.upstream [data-state]').getAttribute('title')).toBe(meaningOfLimit);
  expect(await page.locator('.upstream > header').ariaSnapshot()).toContain(meaningOfLimit);
  const meaning = /^refused because it sends far more than its share/;
  expect(await page.getByRole('button', { name: /^backoff/ }).getAttribute('title')).toMatch(meaning);
  expect(await page.locator('#clients tbody [data-state]').getAttribute('title')).toMatch(meaning);
  const share = page.getByRole('columnheader', { name: 'Share of the rate' });
  expect(await share.getAttribute('title')).toBe('Its part of the rate while other clients send too');
});
