/** Workers share the keys of writes, which their primary keeps. */
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers, type Workers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;

/** A write with this key, on a connection of its own: workers accept connections in turn. */
function pay(gate: Workers, key: string, more: readonly string[] = [], path = '/pay') {
  return send(gate.url, path, { method: 'POST', body: key, headers: ['idempotency-key', key, ...more] });
}

function workersThatServed(gate: Workers): ReadonlySet<unknown> {
  return new Set(gate.log().flatMap(({ msg, worker }) => (msg === 'request' ? [worker] : [])));
}

test(
  'two requests with one key reach the upstream one after the other, whichever workers they reach',
  async () => {
    const inProgress = new Set<string>();
    let atOnce = 0;
    const upstream = await startHttpUpstream((_nth, response, { body }) => {
      const key = body.toString();
      if (inProgress.has(key)) atOnce += 1;
      inProgress.add(key);
      setTimeout(() => {
        inProgress.delete(key);
        response.end('paid');
      }, 100);
    });
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    const keys = Array.from({ length: 20 }, (_, i) => `order-${i}`);
    const answers = await Promise.all(keys.flatMap((key) => [pay(gate, key), pay(gate, key)]));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect([upstream.hits.length, atOnce]).toEqual([40, 0]);
    await eventually(
      () => workersThatServed(gate).size,
      (count) => count === 2,
    );
  },
  PATIENCE,
);

test(
  'with `concurrent: refuse`, a key in use at one worker is refused by all',
  async () => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response) => void held.push(response));
    const api = `{url: "${upstream.url}", idempotency: {concurrent: refuse}}`;
    const gate = await startWorkers(`workers: 2\nupstreams: {api: ${api}}`);
    const first = pay(gate, 'order');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    for (let i = 0; i < 4; i += 1) {
      const { status, json, header } = await pay(gate, 'order');
      expect([status, json()['reason'], Number(header('retry-after')) > 0]).toEqual([409, 'key_in_use', true]);
    }
    expect(upstream.hits.length).toBe(1);
    held[0]?.end('paid');
    expect((await first).status).toBe(200);
  },
  PATIENCE,
);

test(
  'a refusal by one worker does not deny a write that another has under way',
  async () => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_nth, response) => void held.push(response));
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`);
    const first = pay(gate, 'order');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    for (let i = 0; i < 4; i += 1) {
      const { status, json, header } = await pay(gate, 'order', ['expect', 'payment']);
      expect([status, json()['reason'], header('tidegate-outcome')]).toEqual([504, 'expect', 'unknown']);
    }
    const other = await pay(gate, 'another order', ['expect', 'payment']);
    expect([other.status, other.header('tidegate-outcome')]).toEqual([417, undefined]);
    held[0]?.end('paid');
    expect((await first).status).toBe(200);
    for (let i = 0; i < 4; i += 1) {
      const { status, header } = await pay(gate, 'order', ['expect', 'payment']);
      expect([status, header('tidegate-outcome')]).toEqual([417, undefined]);
    }
  },
  PATIENCE,
);

test(
  'at the end of a drain, requests that wait for a key are not denied the write that another worker has under way',
  async () => {
    const upstream = await startHttpUpstream(() => undefined); // never answers
    const drain = 'drain: {delay: 0, timeout: 1s}';
    const gate = await startWorkers(`workers: 2\n${drain}\nupstreams: {api: {url: "${upstream.url}"}}`);
    const answers = Array.from({ length: 5 }, () => pay(gate, 'order'));
    await eventually(
      () => gate.sum('tidegate_requests_in_flight'),
      (count) => count === answers.length,
    );
    gate.child.kill('SIGTERM');
    const outcomes = (await Promise.all(answers)).map(({ status, header }) => [status, header('tidegate-outcome')]);
    expect(outcomes).toEqual(answers.map(() => [504, 'unknown']));
    expect(upstream.hits.length).toBe(1);
  },
  PATIENCE,
);

test(
  'a write whose first attempt was not processed stays at the endpoint of the second one after its primary was killed',
  async () => {
    const endpoints: string[] = [];
    let killPrimary = (): void => undefined;
    const start = (endpoint: string) =>
      startHttpUpstream((_nth, response) => {
        endpoints.push(endpoint);
        if (endpoints.length === 1) return response.writeHead(503).end();
        if (endpoints.length > 2) return response.writeHead(201).end('paid');
        killPrimary();
        return setTimeout(() => response.destroy(), 500); // its worker notices the end of the primary
      });
    const urls = [(await start('a')).url, (await start('b')).url].map((url) => `"${url}"`).join(', ');
    const retry = 'retry: {attempts: 3, backOff: {strategy: fixed, baseInterval: 1ms}}';
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {urls: [${urls}], ${retry}}}`);
    killPrimary = () => void gate.child.kill('SIGKILL');
    expect((await pay(gate, 'order')).status).toBe(201);
    const [first, second, third] = endpoints;
    expect([first === second, third]).toEqual([false, second]);
  },
  PATIENCE,
);

test(
  'a write whose worker is killed is unresolved: sent again while its key is valid, and not afterwards',
  async () => {
    const held: ServerResponse[] = [];
    const upstream = await startHttpUpstream((nth, response, { body }) => {
      if (body.toString() === 'prompt' || nth > 3) response.end('paid');
      else held.push(response);
    });
    const api = `{url: "${upstream.url}", idempotency: {ttl: [{path: /pay, ttl: 2s}, {path: /charge, ttl: 1h}]}}`;
    const gate = await startWorkers(`workers: 2\nupstreams: {api: ${api}}`);
    expect((await pay(gate, 'prompt')).status).toBe(200);
    const lost = Promise.allSettled([pay(gate, 'order'), pay(gate, 'charge', [], '/charge')]);
    await eventually(
      () => held.length,
      (count) => count === 2,
    );
    for (const pid of gate.pids()) process.kill(pid, 'SIGKILL');
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await eventually(gate.pids, ({ length }) => length === 4, 60_000);
    await pause(2000);
    for (let i = 0; i < 4; i += 1) {
      const { status, json, header } = await pay(gate, 'order');
      expect([status, json()['reason'], header('tidegate-outcome')]).toEqual([409, 'key_expired', 'unknown']);
    }
    // Its response was delivered, so the death of its worker changes nothing.
    const prompt = await pay(gate, 'prompt');
    expect([prompt.status, prompt.json()['reason'], prompt.header('tidegate-outcome')]).toEqual([
      409,
      'key_expired',
      undefined,
    ]);
    expect(upstream.hits.length).toBe(3);
    expect((await pay(gate, 'charge', [], '/charge')).status).toBe(200);
    expect(upstream.hits.length).toBe(4);
  },
  PATIENCE,
);
