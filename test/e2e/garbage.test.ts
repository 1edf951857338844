import { expect, onTestFinished, test } from 'vitest';
import { flood } from '../support/flood.ts';
import { listen } from '../support/http-upstream.ts';
import { startProbed } from '../support/probed.ts';

const REQUESTS = 10_000;
/** Bytes of a request. 60 to 120 are typical; in a Set that they all came to and left they were 5000. */
const MOST_KEPT = 1000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test('requests that are over are collected while they are young, also after a full collection', async () => {
  const { url } = await listen((_, response) => {
    response.writeHead(200).end('x'.repeat(1024));
  });
  const gate = await startProbed(`log: {successes: 0}\nupstreams: {api: {url: "${url}"}}\n`, () => undefined);
  onTestFinished(() => gate.stop('SIGKILL'));
  const ask = () => flood(gate.url, { connections: 64, requests: REQUESTS, ahead: 1, request: () => REQUEST });
  for (let i = 0; i < 2; i += 1) await ask();
  // What is young now ages at once: from then on it must not keep what comes after it.
  await gate.held();
  const before = await gate.aged();
  expect(await ask()).toEqual({ answered: { 200: REQUESTS }, cut: 0 });
  expect((await gate.aged()) - before).toBeLessThan(REQUESTS * MOST_KEPT);
}, 30_000);
