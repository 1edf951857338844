/** Quotas that replicas share over Redis, also when one is killed, and when Redis is away or loses its data. */
import { expect, test } from 'vitest';
import { type Received, send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const LIMIT = 300;
const DAY_SECONDS = 86_400;

async function sendMany(gates: readonly Workers[], count: number, concurrency: number): Promise<Received[]> {
  const responses: Received[] = [];
  let next = 0;
  const sendInTurn = async (): Promise<void> => {
    while (next < count) {
      const gate = gates[(next += 1) % gates.length];
      const response = gate && (await send(gate.url, '/').catch(() => undefined));
      if (response !== undefined) responses.push(response);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, sendInTurn));
  return responses;
}

const remaining = (gate: Workers): Promise<number> => gate.sum('tidegate_quota_remaining{upstream="api"');

test(
  'are never exceeded, keep their count over restarts, and are not used blindly without Redis',
  async () => {
    const redis = await startRedis();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const yaml = `state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams: {api: {url: "${upstream.url}", quotas: [{limit: ${LIMIT}, per: rolling 24h}]}}`;
    // The second is two replicas itself.
    const [first, second, third] = await Promise.all(
      [yaml, `workers: 2\n${yaml}`, yaml].map((each) => startWorkers(each)),
    );
    if (first === undefined || second === undefined || third === undefined) throw new Error('no replica');
    // A request is refused if Redis has not responded in time, because this machine is busy.
    await sendMany([first, second, third], 90, 6);
    const used = upstream.hits.length;
    expect(used).toBeGreaterThan(0);
    for (const gate of [first, second]) {
      await eventually(
        () => remaining(gate),
        (left) => left === LIMIT - used,
      );
    }
    const status = (await (await fetch(`${second.adminUrl}/api/status`)).json()) as {
      upstreams: { quotas: unknown }[];
    };
    expect(status.upstreams[0]?.quotas).toMatchObject([{ limit: LIMIT, remaining: LIMIT - used }]);

    const sending = sendMany([first, second, third], 60, 6);
    await eventually(
      () => upstream.hits.length,
      (hits) => hits > used,
    );
    third.child.kill('SIGKILL');
    await sending;
    await redis.restart(); // empty: the others restore what they know
    await eventually(
      async () => {
        await sendMany([first, second], 20, 4);
        return Math.max(await remaining(first), await remaining(second));
      },
      (left) => left === 0,
    );
    expect(upstream.hits.length).toBeLessThanOrEqual(LIMIT);
    expect(upstream.hits.length).toBeGreaterThan(LIMIT - 50);
    const retryAfter = await eventually(
      async () => Number((await send(first.url, '/')).header('retry-after')),
      (seconds) => seconds > DAY_SECONDS - 900,
    );
    expect(retryAfter).toBeLessThanOrEqual(DAY_SECONDS + 721);

    for (const gate of [first, second]) gate.child.kill('SIGTERM');
    await Promise.all([first.ended, second.ended]);
    const hits = upstream.hits.length;
    const next = await startWorkers(yaml);
    const refused = await send(next.url, '/');
    expect([refused.status, (refused.json() as { reason: string }).reason]).toEqual([429, 'quota_exceeded']);

    await redis.kill();
    const unknown = await eventually(
      async () => {
        const response = await send(next.url, '/');
        const id = String(response.header('tidegate-request-id'));
        const explanation = await fetch(`${next.adminUrl}/explain/${id}`, { headers: { accept: 'text/plain' } });
        return { response, story: (await explanation.text()).replaceAll(/\s+/g, ' ') };
      },
      ({ story }) => story.includes('the count of the quota rolling-24h is not available'),
    );
    expect(unknown.response.status).toBe(429);
    expect(unknown.response.json()).toMatchObject({ reason: 'quota_exceeded' });
    expect(Number(unknown.response.header('retry-after'))).toBeLessThanOrEqual(2);
    expect(upstream.hits).toHaveLength(hits);
  },
  PATIENCE,
);
