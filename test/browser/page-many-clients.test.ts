import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { ProcessStatus } from '../../src/admin/page/api-types.ts';
import { startTraffic } from '../../src/simulator/practice/traffic-generator.ts';
import { useBrowser } from '../support/admin/browser.ts';
import { pause } from '../support/pause.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';

const open = useBrowser();
const CLIENTS = 10_000;
/** Maximum busy fraction of the main thread. Laying out ten thousand rows every second takes 0.6. */
const MOST_BUSY = 0.25;
const WATCHED = 6000;

test('keeps the main thread responsive with ten thousand clients, of which it shows fifty', async () => {
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
clients: {key: [header:x-api-key]}
upstreams: {payments: {url: "${upstream.url}"}}
log: {level: warn}
`);
  const pool = new Pool(tidegate.url, { connections: 50 });
  onTestFinished(() => pool.destroy());
  for (let from = 0; from < CLIENTS; from += 500) {
    await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        const { body } = await pool.request({
          method: 'GET',
          path: '/',
          headers: { 'x-api-key': `c-${from + index}` },
        });
        await body.dump();
      }),
    );
  }
  const traffic = startTraffic({
    target: tidegate.url,
    clients: Array.from({ length: 20 }, (_, index) => ({ name: `c-${index}`, rate: 5 })),
  });
  onTestFinished(() => traffic.stop());
  const { page, wrongs } = await open(String(tidegate.adminUrl), { viewport: { width: 1280, height: 900 } });
  await page.getByRole('button', { name: 'Show 50' }).click();
  await eventually(
    () => page.locator('#clients tbody tr').count(),
    (rows) => rows === 50,
  );
  const { clients } = (await (await fetch(`${tidegate.adminUrl}/api/status`)).json()) as ProcessStatus;
  expect(clients.tracked).toBe(CLIENTS);
  expect((await page.locator('#clients [data-count]').textContent())?.replaceAll(/\s/g, ' ')).toBe(
    '10 000 clients, 50 of 10 000 rows, most restricted first',
  );
  const cdp = await page.context().newCDPSession(page);
  // CPU seconds of the page's main thread, which other load on the machine does not affect.
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const measure = async (): Promise<ReadonlyMap<string, number>> => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return new Map(metrics.map(({ name, value }) => [name, value]));
  };
  const before = await measure();
  await pause(WATCHED);
  const after = await measure();
  const grown = (name: string): number => (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN);
  const share = (1000 * grown('TaskDuration')) / WATCHED;
  console.log(`page with ${CLIENTS} clients: busy for ${(100 * share).toFixed(1)} % of the time`);
  expect(grown('LayoutCount')).toBeGreaterThan(2); // it still shows updates
  expect(share).toBeLessThan(MOST_BUSY);
  expect(wrongs).toEqual([]);
});
