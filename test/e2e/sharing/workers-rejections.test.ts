/** A worker asks its primary before it forwards a rejection of a write with a key: the response arrives meanwhile. */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 120_000;
const WRITES = 10;

/** The upstream answers the first attempt of each write with a status, and the second with `reject`. */
async function startGate(first: number, reject: (response: ServerResponse) => void) {
  const attempts = new Map<string, number>();
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    const key = body.toString();
    const attempt = (attempts.get(key) ?? 0) + 1;
    attempts.set(key, attempt);
    if (attempt === 1) response.writeHead(first).end('{}');
    else reject(response);
  });
  const retry = 'retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}, budget: {ratio: 1, burst: 100}}';
  return startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}", ${retry}}}`);
}

const KEYS = Array.from({ length: WRITES }, (_, i) => `order-${i}`);

const pay = ({ url }: { url: string }, key: string) =>
  send(url, '/pay', {
    method: 'POST',
    body: key,
    headers: ['idempotency-key', key],
    signal: AbortSignal.timeout(20_000),
  });

test.each([
  ['small', 'no such account'],
  ['long', 'no such account '.repeat(100_000)],
])(
  'a rejection of a retry reaches the client with its %s body',
  async (_, body) => {
    const gate = await startGate(503, (response) => response.writeHead(404).end(body));
    for (const key of KEYS) {
      const answer = await pay(gate, key);
      expect([answer.status, answer.body.toString() === body]).toEqual([404, true]);
    }
    await eventually(
      () => gate.sum('tidegate_requests_in_flight'),
      (count) => count === 0,
    );
  },
  PATIENCE,
);

test(
  'a rejection of a retry whose body breaks off is broken off for the client too',
  async () => {
    const gate = await startGate(503, (response) => {
      response.writeHead(404, { 'Content-Length': '100' });
      response.write('no such', () => response.destroy());
    });
    for (const key of KEYS) await expect(pay(gate, key)).rejects.toThrow(/aborted|ECONNRESET|hang up/);
    await eventually(
      () => gate.sum('tidegate_requests_in_flight'),
      (count) => count === 0,
    );
  },
  PATIENCE,
);

test(
  'a rejection after an attempt with an unknown outcome is replaced, and its connection is used again',
  async () => {
    const gate = await startGate(504, (response) => response.writeHead(404).end('no such account'));
    for (const key of KEYS) {
      const { status, header } = await pay(gate, key);
      expect([status, header('tidegate-outcome')]).toEqual([504, 'unknown']);
    }
    await eventually(
      () => gate.sum('tidegate_requests_in_flight'),
      (count) => count === 0,
    );
  },
  PATIENCE,
);
