/** Redis users without pub/sub permission, the default for a new user in Redis 7. */
import { expect, test } from 'vitest';
import { startRedis } from '../../support/redis/redis-server.ts';
import { expectReportedOnce, expectUnharmed, startReplicas } from '../../support/proxy/replicas.ts';
import { pause } from '../../support/pause.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const UNAVAILABLE = 'pub/sub of the shared store unavailable: cuts and holds of other replicas arrive late';
const AVAILABLE = 'pub/sub of the shared store available again';

const FORBIDDEN = [
  ['no channel', ['~tidegate:*', 'resetchannels', '+@all']],
  ['no PUBLISH', ['~tidegate:*', '&*', '+@all', '-publish']],
] as const;

async function startWithUser(rules: readonly string[]) {
  const redis = await startRedis();
  const admin = redis.client();
  const allow = (...given: readonly string[]) => admin.call('ACL', 'SETUSER', 'gate', ...given);
  await allow('on', '>word', ...rules);
  return { url: redis.url.replace('//', '//gate:word@'), allow };
}

test.each(FORBIDDEN)('with %s, limits are shared, and the missing permission is logged once', async (_, rules) => {
  const { url, allow } = await startWithUser(rules);
  const run = await startReplicas([url, url]);
  await expectUnharmed(run, await run.during(() => pause(1500)));
  expectReportedOnce(run, []);
  const countOf = (message: string): number[] =>
    run.gates.map((gate) => gate.log().filter(({ msg }) => msg === message).length);
  await eventually(
    () => countOf(UNAVAILABLE),
    (counts) => Math.min(...counts) > 0,
  );
  await allow('&*', '+publish');
  await eventually(
    () => countOf(AVAILABLE),
    (counts) => Math.min(...counts) > 0,
  );
  expect([countOf(UNAVAILABLE), countOf(AVAILABLE)]).toEqual([
    [1, 1],
    [1, 1],
  ]);
});

test.each(FORBIDDEN)(
  'with %s, each change of a key is stored, and one request for a key is sent at a time',
  async (_, rules) => {
    const { url } = await startWithUser(rules);
    const inProgress = new Map<string, number>();
    let most = 0;
    const upstream = await startHttpUpstream((_n, response, { target }) => {
      const count = (inProgress.get(target) ?? 0) + 1;
      inProgress.set(target, count);
      most = Math.max(most, count);
      setTimeout(() => {
        inProgress.set(target, (inProgress.get(target) ?? 1) - 1);
        response.end('paid');
      }, 20);
    });
    const yaml = `state: {store: redis, url: "${url}", timeout: 240ms}\nupstreams: {api: {url: "${upstream.url}", idempotency: {ttl: 1h}}}\n`;
    const gates = [await startTidegate(yaml), await startTidegate(yaml)];
    // A busy machine may let a response of Redis come late: then the client repeats its request, as it is asked to.
    const pay = (key: string, gate: number): Promise<unknown> =>
      eventually(
        () => send(gates[gate]?.url ?? '', `/pay/${key}`, { method: 'POST', headers: ['Idempotency-Key', key] }),
        ({ status }) => status === 200,
      );
    for (let i = 0; i < 4; i += 1) {
      const key = `order-${i}`;
      await Promise.all([pay(key, 0), pay(key, 1)]);
      await pay(key, 0);
      await pay(key, 1);
    }
    expect(most).toBe(1);
    for (const gate of gates) {
      expect(await gate.metric('tidegate_store_requests_total{store="redis",op="key",result="error"}')).toBe(0);
    }
  },
);
