import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { DELIVERY_STATES } from '../../src/core/delivery/delivery-states.ts';
import { findFaint } from './contrast.ts';
import { clientOf, deliveryOf, NO_DELIVERIES, statusOf, upstreamOf } from '../support/admin/status-builders.ts';
import type { Tidegate } from '../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';

const open = useBrowser();
const TOKEN = 'open sesame open';

async function start(): Promise<Tidegate> {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
admin: {listen: 127.0.0.1:0, token: ${TOKEN}}
upstreams: {payments: {url: "${upstream.url}"}}
`);
  for (let n = 0; n < 3; n += 1) await fetch(tidegate.url);
  return tidegate;
}

/** Serves a page with one of everything it can show. */
async function serveEverything(): Promise<string> {
  const at = new Date().toISOString();
  const until = new Date(Date.now() + 60_000).toISOString();
  const states = ['held', 'backoff', 'cooldown', 'restoring', 'normal'] as const;
  const outcomes = [
    'forwarded',
    'recovered',
    'refused',
    'queue_timeout',
    'upstream_error',
    'unknown',
    'client_gone',
  ] as const;
  const status = statusOf({
    at,
    phase: 'draining',
    store: { kind: 'redis', degraded: true, problem: 'connect ECONNREFUSED 10.0.0.1:6379' },
    config: { loadedAt: at, lastReload: { at, ok: false, problem: 'line 3: a mistake' } },
    mode: 'observe',
    deliveries: { counts: { ...NO_DELIVERIES.counts, waiting: 2, dead: 1 }, bytes: 4000, oldestAt: at },
    upstreams: [
      ...(['open', 'backoff', 'cooldown', 'restoring'] as const).map((state) =>
        upstreamOf({ name: state, state, rate: 9 }),
      ),
      upstreamOf({ name: 'blocked', state: 'blocked', blockedBy: 'operator', until, untilWhat: 'blocked until' }),
      upstreamOf({
        name: 'pinned',
        pinned: 5,
        scope: 'client',
        endpoints: [{ endpoint: 'a:1', healthy: false, failure: null }],
      }),
    ],
    requests: {
      ...statusOf().requests,
      outcomes: {
        forwarded: 1,
        accepted: 1,
        recovered: 1,
        replayed: 0,
        coalesced: 0,
        checked: 1,
        preflight: 1,
        refused: 1,
        queue_timeout: 1,
        upstream_error: 1,
        unknown: 1,
        client_gone: 1,
      },
    },
  });
  const rows = states.map((state) =>
    clientOf({ key: `key-${state}`, state, heldUntil: until, nextSlot: until, calmAt: until }),
  );
  const requests = outcomes.map((outcome, index) => ({
    id: `id-${index}`,
    at,
    route: '/',
    upstream: 'open',
    client: 'key-held',
    method: 'GET',
    path: '/v1/charges/of/a/very/long/path/that/does/not/fit/anywhere/at/all/on/a/telephone',
    status: 200,
    outcome,
    reason: null,
    attempts: 1,
    tookSeconds: 0.1,
  }));
  const kinds = ['cut', 'blocked', 'unblocked', 'recovered', 'store', 'reload', 'pin', 'drain'];
  const { url } = await servePageEvents(
    [
      ['status', { status, clients: { total: 5, rows } }],
      ['requests', { requests, more: 3 }],
      ...kinds.map((kind) => ['timeline', { id: kind, at, kind, upstream: 'open', text: 'what it was' }] as const),
    ],
    DELIVERY_STATES.map((state) => ({
      ...deliveryOf({ id: `id-${state}`, state, attempts: 3, eventId: 'evt_1', nextAttemptAt: until }),
      message: {
        method: 'POST',
        target: '/hooks',
        headers: [['Host', 'shop']],
        encoding: 'text',
        body: '{}',
        peer: '::1',
      },
    })),
  );
  return url;
}

async function settle(page: Page): Promise<void> {
  await page.locator('#requests tbody tr').first().waitFor();
  await page.locator('#timeline li').first().waitFor();
  await page.locator('#deliveries tbody tr').first().waitFor();
  for (const row of await page.locator('#short button').all()) await row.click();
}

describe('keyboard access', () => {
  test('pins a rate with the keyboard, and returns the focus to the button', async () => {
    const tidegate = await start();
    const { page } = await open(String(tidegate.adminUrl));
    await page.locator('.upstream').waitFor();
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    const press = (...keys: readonly string[]) =>
      keys.reduce((done, key) => done.then(() => page.keyboard.press(key)), Promise.resolve());
    await press('Tab');
    expect(await focused()).toBe('Skip to upstreams');
    await press('Enter', 'Tab');
    expect(await focused()).toBe('Pin a rate…');
    await press('Enter');
    await page.keyboard.type('50/s'); // replaces the selected suggestion
    await press('Enter');
    await page.getByLabel('Token', { exact: true }).waitFor();
    await page.keyboard.type(TOKEN);
    await press('Enter');
    await page.getByRole('dialog').first().waitFor({ state: 'hidden' });
    await eventually(
      () => page.locator('#toast').textContent(),
      (text) => text?.startsWith('The rate of payments is pinned at 50/s.') === true,
    );
    expect(await focused()).toMatch(/^Pin (a|another) rate…$/);
    expect(await page.locator('#changes').textContent()).toContain('The rate of payments is pinned at 50/s.');
  });

  test('reaches every control with Tab in reading order, with a visible focus', async () => {
    const tidegate = await start();
    const { page } = await open(String(tidegate.adminUrl));
    await page.locator('#requests tbody tr').first().waitFor();
    await page.locator('#requests [data-pause]').click();
    await page.evaluate(() => document.querySelector('h1')?.scrollIntoView());
    const order: number[] = [];
    const wanted = await page.evaluate(() => {
      const all = Array.from(document.querySelectorAll('button, input, select, a')).filter(
        (each) => each.checkVisibility() && !each.closest('dialog') && !each.matches(':disabled, [tabindex="-1"]'),
      );
      for (const [index, each] of all.entries()) each.setAttribute('data-index', String(index));
      (document.activeElement as HTMLElement).blur();
      return all.length;
    });
    await page.locator('h1').click();
    for (let n = 0; n < wanted * 2 && order.length < wanted; n += 1) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const { activeElement } = document;
        const index = activeElement?.getAttribute('data-index');
        if (activeElement === null || index === null || index === undefined) return undefined;
        return { index: Number(index), outline: getComputedStyle(activeElement).outlineStyle };
      });
      if (at === undefined) continue;
      expect(at.outline).not.toBe('none');
      order.push(at.index);
    }
    // The skip link precedes the starting point.
    expect(order.length).toBeGreaterThanOrEqual(wanted - 1);
    expect(order.slice(0, wanted - 1)).toEqual(order.slice(0, wanted - 1).toSorted((a, b) => a - b));
  });
});

test('a list is one tab stop, and the arrow keys move within it', async () => {
  const rows = ['aaaa', 'bbbb', 'cccc'].map((key) => clientOf({ key }));
  const status = statusOf({ at: new Date().toISOString() });
  const { url } = await servePageEvents([['status', { status, clients: { total: 3, rows } }]]);
  const { page } = await open(url);
  const list = page.locator('#clients [data-rows]');
  await list.locator('tr').nth(2).waitFor();
  const focused = (): Promise<string> =>
    page.evaluate(
      () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '',
    );
  const press = async (key: string): Promise<string> => {
    await page.keyboard.press(key);
    return focused();
  };
  expect(await list.locator('button[tabindex="0"]').count()).toBe(1);
  await page.locator('#clients').getByRole('searchbox').focus();
  expect(await press('Tab')).toBe('aaaa');
  expect(await press('ArrowUp')).toBe('aaaa');
  expect(await press('ArrowDown')).toBe('bbbb');
  expect(await press('ArrowRight')).toBe('Reset client bbbb');
  expect(await press('ArrowDown')).toBe('Reset client cccc');
  expect(await press('Home')).toBe('Reset client aaaa');
  expect(await press('ArrowLeft')).toBe('aaaa');
  expect(await press('End')).toBe('cccc');
  // Tab leaves the list, and returns to the same row.
  expect(['aaaa', 'bbbb', 'cccc']).not.toContain(await press('Tab'));
  expect(await press('Shift+Tab')).toBe('cccc');
});

describe('screen reader access', () => {
  test('gives every element a name and a role, uses ids once, and skips no heading level', async () => {
    const { page } = await open(await serveEverything());
    await settle(page);
    const session = await page.context().newCDPSession(page);
    const { nodes } = (await session.send('Accessibility.getFullAXTree')) as {
      nodes: readonly { ignored: boolean; role?: { value: string }; name?: { value: string } }[];
    };
    const named = new Set([
      'button',
      'link',
      'textbox',
      'searchbox',
      'combobox',
      'image',
      'img',
      'table',
      'main',
      'region',
      'article',
    ]);
    const nameless = nodes.filter(
      ({ ignored, role, name }) => !ignored && named.has(role?.value ?? '') && !name?.value && role?.value !== 'main',
    );
    expect(nameless.map(({ role }) => role?.value)).toEqual([]);
    const roles = new Set(nodes.map(({ role }) => role?.value));
    for (const role of ['banner', 'main', 'region', 'table', 'status', 'heading', 'row', 'rowheader', 'columnheader']) {
      expect(roles).toContain(role);
    }
    const found = await page.evaluate(() => {
      const ids = Array.from(document.querySelectorAll('[id]'), ({ id }) => id);
      return {
        twice: ids.filter((id, index) => ids.indexOf(id) !== index),
        dangling: Array.from(document.querySelectorAll('[aria-labelledby], [aria-describedby]')).flatMap((each) =>
          ['aria-labelledby', 'aria-describedby']
            .flatMap((name) => each.getAttribute(name)?.split(' ') ?? [])
            .filter((id) => document.getElementById(id) === null),
        ),
        levels: Array.from(document.querySelectorAll('h1, h2, h3'))
          .filter((each) => each.checkVisibility() && !each.closest('dialog'))
          .map(({ tagName }) => Number(tagName.slice(1))),
        language: document.documentElement.lang,
      };
    });
    expect(found).toMatchObject({ twice: [], dangling: [], language: 'en' });
    expect(found.levels[0]).toBe(1);
    const jumps = found.levels.filter((level, index) => level - (found.levels[index - 1] ?? 0) > 1);
    expect(jumps).toEqual([]);
  });
});

describe('visual access', () => {
  test.each(['dark', 'light'] as const)(
    'every text has a contrast of at least 4.5 to 1 in the %s theme',
    async (colorScheme) => {
      const { page } = await open(await serveEverything(), { colorScheme, reducedMotion: 'reduce' });
      await settle(page);
      expect(await findFaint(page)).toEqual([]);
      // The dialog is checked too.
      await page.getByRole('button', { name: 'Block…' }).first().click();
      expect(await findFaint(page, 'dialog[open]')).toEqual([]);
      await page.keyboard.press('Escape');
      await page.locator('#deliveries [data-open]').first().click();
      await page.getByRole('button', { name: 'Show message' }).click();
      await page.locator('#delivery pre').waitFor();
      expect(await findFaint(page, 'dialog[open]')).toEqual([]);
    },
  );

  test('keeps the chosen theme after a reload, whatever the system theme', async () => {
    const { page } = await open(await serveEverything(), { colorScheme: 'dark' });
    const ground = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await ground();
    await page.getByRole('button', { name: 'Theme: system' }).click();
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    const light = await ground();
    expect(light).not.toBe(dark);
    await page.reload();
    expect(await ground()).toBe(light);
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
  });

  test('needs no horizontal scrolling at widths from 360 px', async () => {
    const { page } = await open(await serveEverything(), { viewport: { width: 360, height: 740 } });
    await settle(page);
    for (const width of [360, 390, 480, 620, 621, 768, 900, 901, 1000, 1280]) {
      await page.setViewportSize({ width, height: 740 });
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect({ width, beyond }).toEqual({ width, beyond: 0 });
    }
  });

  test('shows as many cells as headers in each table on a phone', async () => {
    const { page } = await open(await serveEverything(), { viewport: { width: 390, height: 844 } });
    await settle(page);
    const tables = await page.evaluate(() =>
      Array.from(document.querySelectorAll('table'))
        .filter((table) => table.checkVisibility() && table.querySelector('tbody tr') !== null)
        .map((table) => {
          const count = (selector: string): number =>
            Array.from(table.querySelectorAll(selector)).filter((cell) => cell.checkVisibility()).length;
          return [count('thead th'), count('tbody tr:first-child > *')];
        }),
    );
    expect(tables.length).toBeGreaterThan(1);
    for (const [headers, cells] of tables) expect(cells).toBe(headers);
  });

  test('has touch targets of at least 24 px on a phone', async () => {
    const { page } = await open(await serveEverything(), { viewport: { width: 360, height: 740 }, hasTouch: true });
    await settle(page);
    const small = await page.evaluate(() =>
      Array.from(document.querySelectorAll('button, input, select'))
        .filter((each) => each.checkVisibility() && !each.closest('dialog') && each.getBoundingClientRect().height < 24)
        .map((each) => each.textContent),
    );
    expect(small).toEqual([]);
  });

  test('shows no animation when reduced motion is preferred', async () => {
    const { page } = await open(await serveEverything(), { reducedMotion: 'reduce' });
    await settle(page);
    const moving = await page.evaluate(() => document.getAnimations().length);
    const transitions = await page
      .locator('.measure > span')
      .first()
      .evaluate((each) => getComputedStyle(each).transitionDuration);
    expect({ moving, transitions }).toEqual({ moving: 0, transitions: '0s' });
  });
});
