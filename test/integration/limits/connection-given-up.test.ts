/** A busy loop sends requests at the end of the tick in which they arrived: they may be cancelled before. */
import { buildConnector } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { AttemptListener } from '../../../src/http/upstream/attempt-listener.ts';
import { UpstreamAttempt } from '../../../src/http/upstream/upstream-attempt.ts';
import { Http1ConnectionPool } from '../../../src/http/upstream/http1-connection-pool.ts';
import { undiciClientOptions } from '../../../src/http/upstream/connector.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { simulateLoad } from '../../support/keep-busy.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

async function openPool() {
  const upstream = await startHttpUpstream((_n, response) => response.end('ok'));
  const origin = upstream.url;
  const pool = new Http1ConnectionPool({
    origin,
    maxConnections: 1,
    clock: performance,
    client: undiciClientOptions(),
    connect: buildConnector({}),
    isCurrentAddress: () => true,
    onCapacity: () => undefined,
  });
  onTestFinished(() => pool.destroy());
  const begin = (path: string) => {
    const events: string[] = [];
    const owner: AttemptListener = {
      onInterimResponse: () => undefined,
      onHead: (status) => {
        events.push(String(status));
        attempt.discard();
      },
      onFailure: ({ reason }) => events.push(reason),
      onProgress: () => undefined,
      onBodyEnd: () => undefined,
      onBodyAborted: () => undefined,
      onConnectionReleased: () => attempt.release(),
    };
    const request = { origin, method: 'GET' as const, path, headers: ['host', 'x'], servername: '', body: null };
    const attempt = new UpstreamAttempt(owner, request, performance);
    attempt.pool = pool;
    pool.send(attempt, false);
    return { attempt, events };
  };
  const ask = async (path: string): Promise<void> => {
    const { events, attempt } = begin(path);
    await eventually(
      () => attempt.isOver,
      (isOver) => isOver,
    );
    expect(events).toEqual(['200']);
  };
  return { upstream, begin, ask };
}

test('does not send a request cancelled in the tick it was queued, and reuses its connection', async () => {
  const { upstream, begin, ask } = await openPool();
  await ask('/first');
  await simulateLoad();
  const { attempt, events } = begin('/given-up');
  attempt.cancel();
  await ask('/next');
  expect(upstream.hits.map(({ target }) => target)).toEqual(['/first', '/next']);
  expect(events).toEqual([]);
  expect(upstream.connections()).toBe(1);
});

test('sends a waiting request once, on the connection freed by a cancelled one', async () => {
  const { upstream, begin, ask } = await openPool();
  await ask('/first');
  await simulateLoad();
  const { attempt } = begin('/given-up');
  const waiting = ask('/waiting');
  attempt.cancel();
  await waiting;
  await ask('/last');
  expect(upstream.hits.map(({ target }) => target)).toEqual(['/first', '/waiting', '/last']);
  expect(upstream.connections()).toBe(1);
});
