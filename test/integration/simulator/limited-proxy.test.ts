/** The proxy of the benchmarks that has a limit on requests in flight, and nothing else. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { createLimitedProxy } from '../../bench/goodput/services/limited-proxy.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

interface Sample {
  readonly rtt: number;
  readonly among: number;
  readonly didDrop: boolean;
}

const running: Server[] = [];
afterEach(() => {
  for (const server of running.splice(0)) server.close().closeAllConnections();
});

async function startLimited(upstream: string, limit: number): Promise<{ url: string; samples: Sample[] }> {
  const samples: Sample[] = [];
  const proxy = createLimitedProxy(upstream, {
    limit,
    update: (rtt, among, didDrop) => void samples.push({ rtt, among, didDrop }),
  });
  running.push(proxy.listen(0, '127.0.0.1'));
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('it listens on a port');
  return { url: `http://127.0.0.1:${address.port}`, samples };
}

test('answers 503 beyond its limit, forwards the rest, and samples each response with the number in flight', async () => {
  const waiting: (() => void)[] = [];
  const upstream = await startHttpUpstream((_n, response) => void waiting.push(() => response.end('served')));
  const { url, samples } = await startLimited(upstream.url, 2);
  const admitted = [send(url, '/'), send(url, '/')];
  await eventually(
    () => waiting.length,
    (count) => count === 2,
  );
  expect((await send(url, '/')).status).toBe(503);
  expect(samples).toEqual([]);
  for (const respond of waiting.splice(0)) respond();
  expect((await Promise.all(admitted)).map(({ status }) => status)).toEqual([200, 200]);
  expect(samples.map(({ among }) => among).toSorted((a, b) => a - b)).toEqual([1, 2]);
  expect(samples.some(({ didDrop }) => didDrop)).toBe(false);
  expect(samples.every(({ rtt }) => rtt > 0)).toBe(true);
});

test('samples a request whose client leaves as a drop, and admits another one', async () => {
  let received = 0;
  const upstream = await startHttpUpstream((n, response) => {
    received += 1;
    if (n > 1) response.end();
  });
  const { url, samples } = await startLimited(upstream.url, 1);
  const leaving = new AbortController();
  const left = send(url, '/', { signal: leaving.signal });
  await eventually(
    () => received,
    (count) => count === 1,
  );
  leaving.abort();
  await expect(left).rejects.toThrow();
  await eventually(
    () => samples.length,
    (count) => count === 1,
  );
  expect(samples[0]).toMatchObject({ among: 0, didDrop: true });
  expect((await send(url, '/')).status).toBe(200);
});
