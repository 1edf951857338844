import { expect, test } from 'vitest';
import { useBrowser } from '../support/admin/browser.ts';
import { eventually, startTidegate, startUpstream } from '../support/proxy/tidegate.ts';
import { REDIS_ENDED, startRedis } from '../support/redis/redis-server.ts';

const open = useBrowser();
const PATIENCE = 30_000;

test('names the cause of a store that does not respond, in a banner and the title, and its return calmly', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream();
  const tidegate = await startTidegate(`
upstreams: {payments: {url: "${upstream.url}"}}
state: {store: redis, url: "redis://127.0.0.1:${redis.port}"}
`);
  const { page, wrongs } = await open(String(tidegate.adminUrl));
  await page.locator('.upstream').waitFor();
  expect(await page.title()).toBe('Tidegate');
  expect((await fetch(tidegate.url)).status).toBe(200);
  await redis.kill();
  const notice = page.locator('#notices li', { hasText: 'The store (redis) is not responding' });
  await eventually(
    async () => {
      await fetch(tidegate.url);
      return notice.count();
    },
    (count) => count === 1,
  );
  expect(await notice.textContent()).toMatch(new RegExp(`is not responding: ${REDIS_ENDED}\\. Meanwhile`));
  expect(await page.title()).toBe('■ redis not responding – Tidegate');
  const rowOf = (text: string) => page.locator('#timeline li', { hasText: text });
  await rowOf('redis does not respond').waitFor();
  expect(await rowOf('redis does not respond').getAttribute('data-severity')).toBe('warning');
  await redis.restart();
  await rowOf('redis responds again').waitFor({ timeout: PATIENCE });
  expect(await rowOf('redis responds again').getAttribute('data-severity')).toBe('ok');
  await notice.waitFor({ state: 'detached' });
  expect(await page.title()).toBe('Tidegate');
  expect(wrongs).toEqual([]);
});
