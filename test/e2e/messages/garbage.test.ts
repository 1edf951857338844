import { expect, onTestFinished, test } from 'vitest';
import { flood } from '../../support/clients/flood.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { startProbedProcess } from '../../support/proxy/probed-process.ts';

const REQUESTS = 10_000;
/** Bytes promoted per request. 60 to 120 are typical; a Set that every request joined and left made it 5000. */
const MOST_KEPT = 1000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test('finished requests are collected from the young generation, also after a full collection', async () => {
  const { url } = await listen((_, response) => {
    response.writeHead(200).end('x'.repeat(1024));
  });
  const gate = await startProbedProcess(`log: {successes: 0}\nupstreams: {api: {url: "${url}"}}\n`, () => undefined);
  onTestFinished(() => gate.stop('SIGKILL'));
  const ask = () => flood(gate.url, { connections: 64, requests: REQUESTS, ahead: 1, request: () => REQUEST });
  for (let i = 0; i < 2; i += 1) await ask();
  // A full collection promotes all young objects; they must not keep later requests alive.
  await gate.heldResources();
  const before = await gate.promotedBytes();
  expect(await ask()).toEqual({ answered: { 200: REQUESTS }, cut: 0 });
  expect((await gate.promotedBytes()) - before).toBeLessThan(REQUESTS * MOST_KEPT);
});
