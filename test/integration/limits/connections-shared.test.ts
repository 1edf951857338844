import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { Answerer } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { begin, headerOf, keepAlive, send } from '../../support/clients/send.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const decisions = (decision: string) => `tidegate_ratelimit_decisions_total{upstream="api",decision="${decision}"}`;

/** @param answer of the upstream; by default 100 ms of work */
async function start(connections: number, more = '', answer: Answerer = work) {
  const upstream = await startHttpUpstream(answer);
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", connections: ${connections}${more}}}
clients: {key: ["header:x-api-key"]}
`);
  const agent = keepAlive();
  const ask = (key: string) => send(gate.url, '/', { headers: ['X-Api-Key', key], agent });
  return { upstream, gate, ask };
}

function work(_n: number, response: ServerResponse): void {
  void pause(100).then(() => response.end());
}

test.each(['upstream', 'client'])(
  'barely delays one client when another floods an upstream of four connections (scope %s)',
  AGAIN_IF_STALLED,
  async (scope) => {
    const stalls = watchStalls();
    const { upstream, gate, ask } = await start(4, `, rateLimit: {scope: ${scope}}`);
    const enough = new AbortController();
    onTestFinished(() => enough.abort());
    const floodStatuses: number[] = [];
    const flood = async (): Promise<void> => {
      while (!enough.signal.aborted) {
        const { status } = await ask('flood');
        floodStatuses.push(status);
        if (status !== 200) await pause(100);
      }
    };
    const flooding = Promise.all(Array.from({ length: 100 }, flood));
    await eventually(
      () => floodStatuses,
      (statuses) => statuses.includes(429),
    );
    // For each request, how many others reached the upstream between its start and its arrival.
    const overtaken: number[] = [];
    for (let i = 0; i < 11; i += 1) {
      const before = upstream.hits.length;
      expect((await ask('calm')).status).toBe(200);
      const since = upstream.hits.slice(before);
      overtaken.push(since.findIndex(({ headers }) => headerOf(headers, 'x-api-key') === 'calm'));
    }
    enough.abort();
    await flooding;
    // First come, first served would put all of the waiting flood first: some thirty.
    stalls.unlessStalled(() => expect(Math.max(...overtaken)).toBeLessThan(20));
    // The flooding client is not starved either, and gets rejections.
    expect(floodStatuses.filter((status) => status === 200).length).toBeGreaterThan(10);
    expect(await gate.metric(decisions('refused'))).toBeGreaterThan(0);
    expect(upstream.connections()).toBeLessThanOrEqual(4);
    expect(gate.view().limits.every(({ state }) => state === 'open')).toBe(true);
  },
);

test('sends a request as soon as a connection is free, and counts its wait as queued', async () => {
  const first = Promise.withResolvers<ServerResponse>();
  const { upstream, gate, ask } = await start(1, '', (n, response) => {
    if (n === 1) first.resolve(response);
    else response.end();
  });
  const answers = Promise.all([ask('a'), ask('b'), ask('c')]);
  await eventually(
    () => gate.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === 2,
  );
  (await first.promise).end();
  expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(upstream.hits).toHaveLength(3);
  expect(upstream.connections()).toBe(1);
  expect(await gate.metric(decisions('queued'))).toBe(2);
});

test('passes the connection on when a client disconnects while waiting for it or using it', async () => {
  const { upstream, gate } = await start(1, '', (n, response) => {
    if (n > 1) response.end();
  });
  const leave = () => {
    const request = begin(gate.url, '/', { headers: ['X-Api-Key', 'a'] });
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

test('queues requests for a connection in observe mode instead of rejecting them', async () => {
  const upstream = await startHttpUpstream(work);
  const gate = await startTidegate(
    `mode: observe\nupstreams: {api: {url: "${upstream.url}", connections: 2, queue: {maxWait: 0}}}`,
  );
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(gate.url, '/')));
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(upstream.connections()).toBe(2);
});
