import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { statusOf, upstreamOf } from '../support/admin/status-builders.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const SECONDS = 30;

/** Half a minute of traffic, of which so many attempts fail. */
function traffic(failedPerSecond: number): PageEvent[] {
  return Array.from({ length: SECONDS }, (_, second) => {
    const at = new Date(Date.now() - (SECONDS - 1 - second) * 1000).toISOString();
    const upstream = upstreamOf({
      rate: 60,
      sentPerSecond: 20,
      acceptedPerSecond: 20 - failedPerSecond,
      failedPerSecond,
    });
    return ['status', { status: statusOf({ at, upstreams: [upstream] }), clients: { total: 0, rows: [] } }];
  });
}

/** The opaque pixels of the chart in the colour of a series. */
function pixelsOf(page: Page, series: string): Promise<number> {
  return page.evaluate((name) => {
    const canvas = document.querySelector('canvas');
    const swatch = document.querySelector(`[data-series=${name}] .swatch`);
    const data = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
    if (data === undefined || swatch === null) return 0;
    const [, wanted] = /^rgb\((.*)\)$/.exec(getComputedStyle(swatch).color) ?? [];
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] === 255 && `${data[at]}, ${data[at + 1]}, ${data[at + 2]}` === wanted) found += 1;
    }
    return found;
  }, series);
}

for (const colorScheme of ['dark', 'light'] as const) {
  test(`draws failed attempts in red, in its legend and its description, in the ${colorScheme} theme`, async () => {
    const { page, wrongs } = await open((await servePageEvents(traffic(20))).url, { colorScheme });
    const legend = page.locator('[data-series=failed]');
    await legend.waitFor();
    expect(await legend.textContent()).toBe('failed attempts 20/s');
    expect(await page.locator('[data-plot]').getAttribute('aria-label')).toContain('failed attempts 20/s');
    const [red, green, blue] = await legend
      .locator('.swatch')
      .evaluate((swatch) => (getComputedStyle(swatch).color.match(/\d+/g) ?? []).map(Number));
    expect(red).toBeGreaterThan(1.4 * Math.max(green ?? 255, blue ?? 255));
    // In an outage, the failures cover the attempts.
    await eventually(
      () => pixelsOf(page, 'failed'),
      (count) => count > 200,
    );
    expect(await pixelsOf(page, 'sent')).toBeLessThan(await pixelsOf(page, 'failed'));
    expect(wrongs).toEqual([]);
  });
}

test('draws no red line while nothing fails', async () => {
  const { page } = await open((await servePageEvents(traffic(0))).url);
  await eventually(
    () => pixelsOf(page, 'rate'),
    (count) => count > 200,
  );
  expect(await page.locator('[data-series=failed]').textContent()).toBe('failed attempts 0/s');
  expect(await pixelsOf(page, 'failed')).toBe(0);
});
