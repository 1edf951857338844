/** Replicas that share limits in Redis: one answers the check, another gets the report. */
import { expect, test } from 'vitest';
import { startRedis } from '../../support/redis/redis-server.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const TOKEN = 'correct-horse-battery';

test('applies a report at one replica to the limit and the client hold of all replicas', async () => {
  const redis = await startRedis();
  const replica = () =>
    startTidegate(`
upstreams: {api: {url: "http://127.0.0.1:9"}}
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
check: {token: ${TOKEN}}
secret: 0123456789abcdef0123456789abcdef
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
  const [one, other] = await Promise.all([replica(), replica()]);
  const ask = async (url: string, key: string) => send(url, '/check', { headers: ['X-Api-Key', key] });
  const passed = await eventually(
    () => ask(one.url, 'a'),
    ({ status }) => status === 200,
  );
  await eventually(
    () => ask(other.url, 'b'),
    ({ status }) => status === 200,
  );
  const permit = passed.header('tidegate-permit');
  const reported = await send(other.url, '/report', {
    method: 'POST',
    headers: ['Authorization', `Bearer ${TOKEN}`],
    body: JSON.stringify({ permit, status: 429, retryAfter: 30 }),
  });
  expect(reported.status).toBe(204);
  for (const { view } of [one, other]) await eventually(view, ({ limits }) => limits[0]?.state !== 'open');
  for (const { url } of [other, one]) {
    const held = await eventually(
      () => ask(url, 'a'),
      ({ status }) => status === 429,
    );
    expect(held.json()['reason']).toBe('held');
  }
  // No other client received a hint.
  await eventually(
    () => ask(one.url, 'b'),
    ({ status }) => status === 200,
  );
});
