import { describe, expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { clientOf, statusOf, upstreamOf } from '../support/admin/status-builders.ts';
import type { PageEvent } from '../support/admin/page-event-server.ts';
import { servePageEvents } from '../support/admin/page-event-server.ts';
import { eventually } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const PATIENCE = 30_000;

/** The time in `seconds` seconds. */
function after(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString();
}

function statusEvent(status: Parameters<typeof statusOf>[0]): PageEvent {
  return ['status', { status: statusOf({ at: after(0), ...status }), clients: { total: 0, rows: [] } }];
}

describe('the page shows', () => {
  test('that the upstream is blocked, with a countdown between two updates', async () => {
    const blocked = upstreamOf({
      state: 'blocked',
      blockedBy: 'upstream',
      blockedCause: 'rejections',
      until: after(30),
      untilWhat: 'next probe',
      rate: 84,
      queued: 7,
    });
    const { page } = await open((await servePageEvents([statusEvent({ upstreams: [blocked] })])).url);
    const headline = (): Promise<string | null> =>
      page.locator('.upstream [data-headline]').textContent({ timeout: PATIENCE });
    const first = String(await headline());
    expect(first).toMatch(/^Blocked by the upstream: it rejects every request; next probe in \d\d s; 7 waiting$/);
    await eventually(headline, (text) => text !== first);
    expect(await page.locator('#changes').textContent()).toContain('payments: blocked by the upstream');
  });

  test('who is refused and why, also in the title of the tab', async () => {
    const most = { key: 'ea5c4a4ec1d7e9ab', name: 'batch', shareOfRefusals: 0.97, demandPerSecond: 73 };
    const storm = upstreamOf({
      ...{ rate: 16, sentPerSecond: 16, refusedPerSecond: 65 },
      mostRefused: { ...most, sharePerSecond: 5.4, heldUntil: null },
    });
    const { page } = await open((await servePageEvents([statusEvent({ upstreams: [storm] })])).url);
    const headline = page.locator('.upstream [data-headline]');
    await headline.waitFor({ timeout: PATIENCE });
    expect(await headline.textContent()).toBe(
      'Allowed 16/s, sending 16/s, 65/s refused, 97 % to client batch (sends 73/s, its share is 5.4/s)',
    );
    expect(await page.title()).toBe('▲ requests to payments refused – Tidegate');
  });

  test('one summary line for each of several upstreams', async () => {
    const upstreams = [upstreamOf({ rate: 84, sentPerSecond: 80 }), upstreamOf({ name: 'ledger', state: 'blocked' })];
    const { page } = await open((await servePageEvents([statusEvent({ upstreams })])).url);
    await page.locator('#short li').first().waitFor();
    expect(await page.locator('#short li').allTextContents()).toEqual([
      'payments allowed 84/s, sending 80/s, healthy',
      'ledger blocked by the upstream; probing now',
    ]);
    expect(await page.title()).toBe('■ ledger blocked – Tidegate');
    expect(await page.locator('.upstream').count()).toBe(0);
    const ledger = page.getByRole('button', { name: 'ledger' });
    await ledger.click();
    await page.getByRole('article', { name: 'ledger' }).waitFor();
    expect(await page.locator('.upstream').count()).toBe(1);
    expect(await ledger.getAttribute('aria-expanded')).toBe('true');
    await ledger.click();
    await page.getByRole('article', { name: 'ledger' }).waitFor({ state: 'hidden' });
    expect(await ledger.getAttribute('aria-expanded')).toBe('false');
  });

  test('ten upstreams and the clients on one screen, and the card that the address names', async () => {
    const upstreams = Array.from({ length: 10 }, (_, index) =>
      upstreamOf({ name: `upstream ${index}`, rate: 84, sentPerSecond: 80 }),
    );
    const { url } = await servePageEvents([statusEvent({ upstreams })]);
    const { page } = await open(url, { viewport: { width: 1280, height: 900 } });
    await page.locator('#short li').nth(9).waitFor();
    const box = await page.locator('#clients').boundingBox();
    expect(box?.y).toBeLessThan(600);
    const named = await open(`${url}/#upstream-upstream%203`);
    await named.page.getByRole('article', { name: 'upstream 3' }).waitFor();
    expect(await named.page.locator('.upstream').count()).toBe(1);
  });

  test('that the store is unavailable, a reload failed and the process is draining', async () => {
    const lastReload = {
      at: after(-9),
      ok: false,
      problem: 'tidegate.yaml:3:1 retyr: unknown key (did you mean retry?)',
    };
    const status = statusEvent({
      phase: 'draining',
      store: { kind: 'redis', degraded: true, problem: 'connect ECONNREFUSED 10.0.0.1:6379' },
      config: { loadedAt: after(-99), lastReload },
    });
    const { page } = await open((await servePageEvents([status])).url);
    await page.locator('#notices li').first().waitFor();
    const notices = (await page.locator('#notices li').allTextContents()).join('\n');
    expect(notices).toMatch(/^Draining/);
    expect(notices).toContain('The store (redis) is not responding: connect ECONNREFUSED 10.0.0.1:6379. Meanwhile');
    expect(await page.title()).toBe('■ redis not responding – Tidegate');
    expect(notices).toContain('did you mean retry?');
    expect(await page.getByRole('button', { name: 'Drain…' }).isDisabled()).toBe(true);
  });

  test('how long a client is held, without moving rows under the pointer', async () => {
    const rows = ['aaaa', 'bbbb', 'cccc'].map((key) => clientOf({ key, state: 'held', heldUntil: after(40) }));
    const frame = (keys: readonly string[]): PageEvent => [
      'status',
      {
        status: statusOf({ at: after(0) }),
        clients: { total: 3, rows: keys.map((key) => rows.find((row) => row.key === key)) },
      },
    ];
    const { url, send } = await servePageEvents([frame(['aaaa', 'bbbb', 'cccc'])]);
    const { page } = await open(url);
    const keys = (): Promise<string[]> => page.locator('#clients [data-open]').allTextContents();
    await eventually(keys, (seen) => seen.join() === 'aaaa,bbbb,cccc');
    expect(await page.locator('#clients [data-state]').first().textContent()).toMatch(/^held, [34]\d s$/);
    await page.locator('#clients tbody tr').nth(1).hover();
    send(frame(['cccc', 'bbbb']));
    const gone = page.locator('#clients tr[data-gone]');
    await eventually(
      () => gone.count(),
      (count) => count === 1,
    );
    expect(await keys()).toEqual(['aaaa', 'bbbb', 'cccc']);
    await page.locator('h1').hover();
    await eventually(keys, (seen) => seen.join() === 'cccc,bbbb');
  });
});

test('draws nothing while the page is hidden', async () => {
  const { page } = await open((await servePageEvents([statusEvent({})])).url);
  await page.locator('.upstream').waitFor();
  const frames = (): Promise<number> =>
    page.evaluate(async () => {
      let asked = 0;
      const { requestAnimationFrame: ask } = window;
      window.requestAnimationFrame = (callback) => {
        asked += 1;
        return ask(callback);
      };
      await new Promise((resolve) => {
        setTimeout(resolve, 1300);
      });
      window.requestAnimationFrame = ask;
      return asked;
    });
  expect(await frames()).toBeGreaterThan(0);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  expect(await frames()).toBe(0);
});
