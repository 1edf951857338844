/** Quotas of classes and of single clients that replicas share over Redis. */
import { expect, test } from 'vitest';
import { TOKEN } from '../../support/admin/admin-api.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { forwarded, resetQuotas, sendAs, useUpAs } from '../../support/quotas/client-requests.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

test(
  'each client gets exactly its quota at all replicas together, also after one is killed and all have restarted',
  async () => {
    const redis = await startRedis();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const file = makeKeyFile('partner-a', 'partner-b', 'partner-c');
    const [a = '', b = '', c = ''] = file.keys;
    const yaml = `state: {store: redis, url: "${redis.url}", timeout: 240ms}
secret: 0123456789abcdef0123456789abcdef
upstreams: {api: {url: "${upstream.url}"}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {partners: {match: {key: ["partner-*"]}, quota: 150/rolling 24h, perClient: {quota: 60/rolling 24h}}}`;
    // The second is two replicas itself.
    const [first, second] = await Promise.all([yaml, `workers: 2\n${yaml}`].map((each) => startWorkers(each)));
    if (first === undefined || second === undefined) throw new Error('no replica');
    const ofA = await useUpAs([first, second], a);
    expect(ofA).toBe(60);
    const ofB = forwarded(await sendAs([first, second], b, 20));
    first.child.kill('SIGKILL');
    await first.ended;
    const restOfB = await useUpAs([second], b);
    expect(ofB + restOfB).toBeLessThanOrEqual(60);
    expect(ofB + restOfB).toBeGreaterThan(50); // what the killed replica had leased counts
    second.child.kill('SIGTERM');
    await second.ended;

    const next = await startWorkers(yaml);
    expect(await useUpAs([next], a)).toBe(0);
    const ofC = await useUpAs([next], c); // the rest of the class
    expect(ofC).toBeGreaterThan(0);
    expect(upstream.hits.length).toBeLessThanOrEqual(150);

    await redis.kill();
    const unknown = await eventually(
      async () => {
        const [response] = await sendAs([next], b, 1);
        const id = String(response?.header('tidegate-request-id'));
        const explanation = await fetch(`${next.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
        return { response, story: (await explanation.text()).replaceAll(/\s+/g, ' ') };
      },
      ({ story }) => /the count of the quota class:partners\S* is not available/.test(story),
    );
    expect(unknown.response?.status).toBe(429);
    expect(unknown.response?.json()).toMatchObject({ reason: 'quota_exceeded' });
  },
  PATIENCE,
);

test(
  'a reset by an operator at one replica holds at all of them, and in each of their workers',
  async () => {
    const redis = await startRedis();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const file = makeKeyFile('shop', 'other');
    const [key = '', other = ''] = file.keys;
    const yaml = `state: {store: redis, url: "${redis.url}", timeout: 240ms}
secret: 0123456789abcdef0123456789abcdef
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
upstreams: {api: {url: "${upstream.url}"}}
clients:
  auth: {apiKeys: {file: ${file.path}}}
  classes: {all: {match: {key: ["*"]}, perClient: {quota: 40/rolling 24h}}}`;
    const [first, second] = await Promise.all([yaml, `workers: 2\n${yaml}`].map((each) => startWorkers(each)));
    if (first === undefined || second === undefined) throw new Error('no replica');
    const gates = [first, second];
    expect(await useUpAs(gates, key)).toBe(40);
    expect(await useUpAs(gates, other)).toBe(40);
    for (const each of gates) {
      await resetQuotas(each, 'shop');
      expect(await useUpAs(gates, key)).toBe(40);
    }
    expect(await useUpAs(gates, other)).toBe(0);
  },
  PATIENCE,
);
