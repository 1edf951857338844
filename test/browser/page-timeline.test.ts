import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { statusOf } from '../support/admin/status-builders.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const CUTS = 150;

function eventOf(id: string, secondsAgo: number, kind: string, text: string): PageEvent {
  return ['timeline', { id, at: new Date(Date.now() - secondsAgo * 1000).toISOString(), kind, upstream: 'pay', text }];
}

/** Cuts between three times as many changes of state, oldest first. */
function storm(): PageEvent[] {
  return Array.from({ length: CUTS }, (_, index) => {
    const ago = (CUTS - index) * 10;
    return [
      eventOf(`cut-${index}`, ago, 'cut', `cut ${index}`),
      ...[1, 2, 3].map((n) => eventOf(`state-${index}-${n}`, ago - n, 'state', 'cooldown → restoring')),
    ];
  }).flat();
}

function countKinds(page: Page): Promise<{ readonly cut: number; readonly state: number }> {
  return page.locator('#timeline .kind').evaluateAll((kinds) => {
    const count = (kind: string): number => kinds.filter(({ textContent }) => textContent === kind).length;
    return { cut: count('cut'), state: count('state') };
  });
}

test('hides changes of state until they are asked for, also with the keyboard, and remembers the choice', async () => {
  const status: PageEvent = ['status', { status: statusOf(), clients: { total: 0, rows: [] } }];
  const { url } = await servePageEvents([status, ...storm()]);
  const { page, wrongs } = await open(url);
  const kinds = await eventually(
    () => countKinds(page),
    ({ cut }) => cut > 0,
  );
  expect(kinds).toEqual({ cut: CUTS, state: 0 });
  const box = page.getByRole('checkbox', { name: 'show state changes' });
  await box.focus();
  await page.keyboard.press('Space');
  const all = await eventually(
    () => countKinds(page),
    ({ state }) => state > 0,
  );
  expect(all).toEqual({ cut: 50, state: 150 });
  await page.reload();
  await eventually(
    () => countKinds(page),
    ({ state }) => state > 0,
  );
  expect(await box.isChecked()).toBe(true);
  await box.uncheck();
  expect(await countKinds(page)).toEqual({ cut: CUTS, state: 0 });
  expect(wrongs).toEqual([]);
});
