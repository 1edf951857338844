import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { statusOf } from '../support/admin/status-builders.ts';

const open = useBrowser();
/** Shorter ones do not tell requests apart. */
const LEAST_CHARACTERS = 28;

const OUTCOMES = ['forwarded', 'refused', 'queue_timeout', 'upstream_error', 'recovered'];
const DURATIONS = [0.00002, 0.085, 0.85, 9.99, 125.5];

function requests(): PageEvent {
  const rows = OUTCOMES.map((outcome, index) => ({
    id: `id-${index}`,
    at: new Date().toISOString(),
    route: '/',
    upstream: 'payments',
    client: '9f86d081884c7d65',
    method: 'POST',
    path: `/v1/payments/pay_1${index}/captures/and/a/tail/that/does/not/fit/on/any/telephone`,
    status: 200,
    outcome,
    reason: null,
    attempts: 1,
    tookSeconds: DURATIONS[index],
  }));
  return ['requests', { requests: rows, more: 0 }];
}

test('shows whole durations and enough of each path on a phone, below the right headers', async () => {
  const status: PageEvent = ['status', { status: statusOf(), clients: { total: 0, rows: [] } }];
  const { page, wrongs } = await open((await servePageEvents([status, requests()])).url, {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
  });
  await page.locator('#requests tbody tr').nth(4).waitFor();
  const seen = await page.locator('#requests table').evaluate((table) => {
    const { right } = table.getBoundingClientRect();
    const shown = (row: Element): Element[] => Array.from(row.children).filter((cell) => cell.checkVisibility());
    const edges = (row: Element): number[][] =>
      shown(row).map((cell) => {
        const box = cell.getBoundingClientRect();
        return [Math.round(box.left), Math.round(box.right)];
      });
    const rows = Array.from(table.querySelectorAll('tbody tr'));
    const [head] = Array.from(table.querySelectorAll('thead tr'));
    /** The extent of a cell's text, which may be wider than the cell. */
    const textEdges = (cell: Element): { readonly left: number; readonly right: number } => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getBoundingClientRect();
    };
    return {
      head: head === undefined ? [] : edges(head),
      rows: rows.map(edges),
      isCut: [...(head === undefined ? [] : [head]), ...rows].flatMap(shown).some((cell) => {
        const [text, box] = [textEdges(cell), cell.getBoundingClientRect()];
        return text.left < box.left - 1 || text.right > Math.min(box.right, right) + 1;
      }),
      paths: rows.map((row) => {
        const button = row.querySelector('[data-open]');
        if (button === null) return 0;
        const text = button.firstChild;
        const { bottom, right: end } = button.getBoundingClientRect();
        if (text === null) return 0;
        const range = document.createRange();
        const characters = Array.from({ length: text.textContent?.length ?? 0 }, (_, index) => {
          range.setStart(text, index);
          range.setEnd(text, index + 1);
          return range.getBoundingClientRect();
        });
        return characters.filter((each) => each.bottom <= bottom + 1 && each.right <= end + 1).length;
      }),
    };
  });
  for (const row of seen.rows) expect(row).toEqual(seen.head);
  expect(seen.isCut).toBe(false);
  expect(Math.min(...seen.paths)).toBeGreaterThanOrEqual(LEAST_CHARACTERS);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  expect(wrongs).toEqual([]);
});
