import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { pause } from '../support/pause.ts';
import { begin, keepAlive, send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

const decisions = (decision: string) => `tidegate_ratelimit_decisions_total{upstream="api",decision="${decision}"}`;

async function start(connections: number, more = '') {
  const upstream = await startHttpUpstream((_n, response) => void pause(100).then(() => response.end()));
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", connections: ${connections}${more}}}
clients: {key: ["header:x-api-key"]}
`);
  const agent = keepAlive();
  const ask = (key: string) => send(gate.url, '/', { headers: ['X-Api-Key', key], agent });
  return { upstream, gate, ask };
}

test.each(['upstream', 'client'])(
  'one client floods an upstream of four connections, and another beside it hardly waits (scope %s)',
  async (scope) => {
    const { upstream, gate, ask } = await start(4, `, rateLimit: {scope: ${scope}}`);
    const until = performance.now() + 2500;
    const told: number[] = [];
    const flood = async (): Promise<void> => {
      while (performance.now() < until) {
        const { status } = await ask('flood');
        told.push(status);
        if (status !== 200) await pause(100);
      }
    };
    const floods = Array.from({ length: 100 }, flood);
    await pause(300);
    const waits: number[] = [];
    while (performance.now() < until - 500) {
      const answer = await ask('calm');
      expect(answer.status).toBe(200);
      waits.push(answer.took);
      await pause(20);
    }
    await Promise.all(floods);
    // Behind the flood, first come first served, it would be a hundred requests later: 2.5 s.
    expect(waits.length).toBeGreaterThan(3);
    expect(waits.toSorted((a, b) => a - b)[waits.length >> 1]).toBeLessThan(1000);
    // The flood is not starved either, and is told to stay away.
    expect(told.filter((status) => status === 200).length).toBeGreaterThan(10);
    expect(told).toContain(429);
    expect(await gate.metric(decisions('refused'))).toBeGreaterThan(0);
    expect(upstream.connections()).toBeLessThanOrEqual(4);
    expect(gate.view().limits.every(({ state }) => state === 'open')).toBe(true);
  },
);

test('what waits for a connection is sent as soon as there is one, and is counted as queued', async () => {
  const { upstream, gate, ask } = await start(1);
  const answers = [ask('a'), ask('b'), ask('c')];
  await eventually(
    () => gate.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === 2,
  );
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(upstream.hits).toHaveLength(3);
  expect(upstream.connections()).toBe(1);
  expect(await gate.metric(decisions('queued'))).toBe(2);
});

test('a client that leaves while it waits for a connection, or holds one, lets the next one have it', async () => {
  const { upstream, gate } = await start(1);
  const leave = () => {
    const request = begin(gate.url, '/', { headers: ['X-Api-Key', 'a'] });
    request.on('error', () => undefined);
    request.end();
    return request;
  };
  const holding = leave();
  await eventually(
    () => upstream.hits.length,
    (hits) => hits === 1,
  );
  const waiting = leave();
  await eventually(
    () => gate.view().limits[0]?.queued,
    (queued) => queued === 1,
  );
  waiting.destroy();
  holding.destroy();
  const next = await send(gate.url, '/', { headers: ['X-Api-Key', 'b'] });
  expect(next.status).toBe(200);
  expect(upstream.hits).toHaveLength(2);
});

test('observed, requests beyond the connections are not refused: they wait for one', async () => {
  const upstream = await startHttpUpstream((_n, response) => void pause(100).then(() => response.end()));
  const gate = await startTidegate(
    `mode: observe\nupstreams: {api: {url: "${upstream.url}", connections: 2, queue: {maxWait: 0}}}`,
  );
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(gate.url, '/')));
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(upstream.connections()).toBe(2);
});
