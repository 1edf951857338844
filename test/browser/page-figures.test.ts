import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { History, ProcessStatus } from '../../src/admin/page/api-types.ts';
import { formatCount, formatPercent, formatRateLabel } from '../../src/admin/page/text/labels.js';
import { startTraffic } from '../../src/simulator/practice/traffic-generator.ts';
import { useBrowser } from '../support/admin/browser.ts';
import type { Tidegate } from '../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const PATIENCE = 30_000;

async function startBusy(): Promise<{ readonly tidegate: Tidegate; readonly stop: () => Promise<void> }> {
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 40, burst: 5 } });
  const tidegate = await startTidegate(`
clients: {key: [header:x-api-key]}
upstreams: {payments: {url: "${upstream.url}"}}
`);
  const clients = [
    { name: 'shop', rate: 25, honoursRetryAfter: true },
    { name: 'batch', rate: 60 },
  ];
  const traffic = startTraffic({ target: tidegate.url, clients });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= traffic.stop());
  onTestFinished(stop);
  return { tidegate, stop };
}

async function ask(tidegate: Tidegate): Promise<ProcessStatus> {
  return (await (await fetch(`${tidegate.adminUrl}/api/status`)).json()) as ProcessStatus;
}

function texts(page: Page, selector: string): Promise<string[]> {
  return page.locator(selector).allTextContents();
}

describe('the page', () => {
  test('shows the values of the API after a limit was learned and traffic has stopped', async () => {
    const { tidegate, stop } = await startBusy();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await page.waitForSelector('.upstream');
    const headline = page.locator('.upstream [data-headline]');
    await eventually(
      () => headline.textContent(),
      (text) => /(cut to|allowed) \d+(\.\d)?\/s.*sending [1-9]\d*(\.\d)?\/s/i.test(text ?? ''),
    );
    await eventually(
      async () => (await texts(page, '#requests [data-outcome]')).join(' '),
      (outcomes) => outcomes.includes('refused') && outcomes.includes('forwarded'),
    );
    await stop();
    const seen = await eventually(
      async () => {
        const { requests, upstreams, clients } = await ask(tidegate);
        const [upstream] = upstreams;
        if (upstream === undefined) throw new Error('it has an upstream');
        const expected = {
          phase: 'ready',
          requests: formatRateLabel(requests.perSecond),
          forwarded: `${formatCount(requests.outcomes.forwarded)} forwarded`,
          state: upstream.state,
          allowed: formatRateLabel(upstream.rate),
          sent: formatRateLabel(upstream.sentPerSecond),
          waiting: formatCount(upstream.queued),
          inFlight: formatCount(upstream.inFlight),
          budget: formatPercent(upstream.budgetLeft),
          endpoint: upstream.endpoints[0]?.endpoint,
          clients: `all ${formatCount(clients.tracked)}`,
        };
        const text = (selector: string): Promise<string | null> => page.locator(selector).first().textContent();
        const shown: typeof expected = {
          phase: String(await text('#phase [data-text]')),
          requests: String(await text('[data-total=perSecond]')),
          forwarded: String(await text('#outcomes li')),
          state: (await text('.upstream [data-state]')) as typeof expected.state,
          allowed: String(await text('[data-series=rate] [data-value]')).replace('none', 'no limit'),
          sent: String(await text('[data-series=sent] [data-value]')),
          waiting: String(await text('[data-figure=queued]')),
          inFlight: String(await text('[data-figure=inFlight]')).replace(/ of .*/, ''),
          budget: String(await text('[data-figure=budget]')),
          endpoint: String(await text('[data-endpoints] li')),
          clients: String(await text('#clients [data-states] button')),
        };
        return { expected, shown };
      },
      ({ expected, shown }) => expected.sent === '0/s' && JSON.stringify(expected) === JSON.stringify(shown),
    );
    expect(seen.shown).toEqual(seen.expected);
    expect(wrongs).toEqual([]);
  });

  test('opens with the rates from before, for five minutes or an hour', async () => {
    const { tidegate } = await startBusy();
    const history = async (): Promise<History['upstreams'][number]['samples']> => {
      const response = await fetch(`${tidegate.adminUrl}/api/history`);
      return ((await response.json()) as History).upstreams[0]?.samples ?? [];
    };
    await eventually(history, (samples) => samples.length >= 4 && samples.some(({ rate }) => rate !== null));
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    const when = page.locator('.upstream [data-when]');
    // The page was opened a moment ago, and shows more than that.
    await eventually(
      () => when.textContent(),
      (text) => Number(/^last (\d+) s$/.exec(text ?? '')?.[1]) >= 3,
    );
    const button = page.getByRole('button', { name: 'Charts: 5 minutes' });
    await button.click();
    await page.getByRole('button', { name: 'Charts: hour' }).waitFor();
    expect(wrongs).toEqual([]);
  });

  test('draws the rates in the colours of the theme', async () => {
    const { tidegate } = await startBusy();
    const { page, wrongs } = await open(String(tidegate.adminUrl), { colorScheme: 'dark' });
    const inks = (): Promise<string[]> =>
      page.evaluate(() => {
        const canvas = document.querySelector('canvas');
        const data = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        const found = new Map<string, number>();
        for (let at = 0; at < data.length; at += 4) {
          if (data[at + 3] !== 255) continue;
          const colour = `${data[at]}, ${data[at + 1]}, ${data[at + 2]}`;
          found.set(colour, (found.get(colour) ?? 0) + 1);
        }
        return Array.from(found.keys());
      });
    const accent = (): Promise<string> =>
      page
        .locator('[data-series=rate] .swatch')
        .evaluate((swatch) => getComputedStyle(swatch).color.replace(/^rgb\((.*)\)$/, '$1'));
    const dark = await accent();
    await eventually(inks, (colours) => colours.includes(dark));
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await accent();
    expect(light).not.toBe(dark);
    await eventually(inks, (colours) => colours.includes(light) && !colours.includes(dark));
    expect(wrongs).toEqual([]);
  });

  test('shows the timeline, and explains a request', async () => {
    const { tidegate } = await startBusy();
    const { page, wrongs } = await open(String(tidegate.adminUrl));
    await eventually(
      () => texts(page, '#timeline .kind'),
      (kinds) => kinds.includes('cut'),
    );
    await page.selectOption('#requests [data-outcome]', 'refused');
    const refused = page.locator('#requests tbody tr', { hasText: 'refused' });
    await refused.first().waitFor({ timeout: PATIENCE });
    await page.locator('#requests [data-pause]').click();
    await refused.first().locator('[data-open]').click();
    const dialog = page.getByRole('dialog', { name: /^GET / });
    await dialog.waitFor();
    expect(await dialog.locator('[data-verdict]').textContent()).toMatch(/refused/i);
    expect(await dialog.locator('[data-steps] li').count()).toBeGreaterThan(1);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(wrongs).toEqual([]);
  });

  test('finds a client by its key and by its state', async () => {
    const { tidegate } = await startBusy();
    const { page } = await open(String(tidegate.adminUrl));
    const keys = (): Promise<string[]> => texts(page, '#clients [data-open]');
    const [key = ''] = await eventually(keys, (seen) => seen.length === 2);
    await page.locator('#clients').getByRole('searchbox').fill(key.slice(0, 6));
    await eventually(keys, (seen) => seen.length === 1 && seen[0] === key);
    await page.locator('#clients').getByRole('searchbox').fill('no such key');
    await page.getByText('No client matches.').waitFor();
    await page.locator('#clients').getByRole('searchbox').fill('');
    await page.getByRole('button', { name: /^held \d/ }).click();
    const states = await eventually(
      () => texts(page, '#clients tbody [data-state]'),
      (seen) => seen.every((state) => state.startsWith('held')),
    );
    expect(states.length).toBeLessThanOrEqual(2);
  });
});
