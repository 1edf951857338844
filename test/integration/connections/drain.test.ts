import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { begin, keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const inFlight = 'tidegate_requests_in_flight{route="/"}';

test('completes requests in flight and closes their connections', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    setTimeout(() => response.end('finished'), 400);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const agent = keepAlive();
  const inHand = send(gate.url, '/', { agent });
  await eventually(
    () => upstream.hits,
    ({ length }) => length === 1,
  );
  const drained = gate.drain();
  await pause(50);
  await expect(send(gate.url, '/late')).rejects.toThrow(/ECONNREFUSED/);
  const answer = await inHand;
  expect(answer.body.toString()).toBe('finished');
  expect(answer.header('connection')).toBe('close');
  await drained;
  expect(upstream.hits).toHaveLength(1);
});

test('keeps serving while load balancers notice that it is not ready', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`drain: {delay: 900ms, timeout: 1s}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const ready = async () => (await fetch(`${gate.adminUrl}/readyz`)).status;
  const live = async () => (await fetch(`${gate.adminUrl}/livez`)).status;
  expect(await ready()).toBe(200);
  const drained = gate.drain();
  expect(await ready()).toBe(503);
  expect(await live()).toBe(200);
  expect((await send(gate.url, '/')).status).toBe(200);
  await drained;
  await expect(fetch(`${gate.adminUrl}/readyz`)).rejects.toThrow();
});

test.each(['head', 'body'])(
  'waits for a response that is kept for repeats although its client has left within its %s',
  async (left) => {
    const answers: ServerResponse[] = [];
    const upstream = await startHttpUpstream((_n, response) => {
      if (left === 'body') response.writeHead(201).write('one, ');
      answers.push(response);
    });
    const gate = await startTidegate(`drain: {delay: 0, timeout: 5s}
upstreams: {api: {url: "${upstream.url}", retry: {onClientGone: finish}, idempotency: {replayAnswers: 1h}}}`);
    const outgoing = begin(gate.url, '/charges', { method: 'POST', headers: ['Idempotency-Key', 'k'] }, (incoming) => {
      incoming.on('error', () => undefined).once('data', () => outgoing.destroy());
    });
    outgoing.end('amount=1');
    await eventually(
      () => answers,
      ({ length }) => length === 1,
    );
    if (left === 'head') {
      outgoing.destroy();
      // The client has left once its connection is closed; then the response begins.
      await new Promise((resolve) => outgoing.once('close', resolve));
      answers[0]?.writeHead(201).write('one, ');
    } else await eventually(gate.requests, ({ length }) => length === 1);
    let isDrained = false;
    const drained = gate.drain().then(() => (isDrained = true));
    await pause(200);
    expect(isDrained).toBe(false);
    answers[0]?.end('two');
    await drained;
    expect(gate.log().filter(({ msg }) => msg === 'drain timeout: requests in flight are aborted')).toEqual([]);
  },
);

test('answers requests that wait for a connection of the pool when the drain ends', async () => {
  const upstream = await listen(() => undefined);
  const gate = await startTidegate(`
mode: observe
drain: {delay: 0, timeout: 300ms}
upstreams: {api: {url: "${upstream.url}", connections: 1, timeout: 60s, perTryTimeout: 60s}}`);
  const inFlightIs = (wanted: number) =>
    eventually(
      () => gate.metric(inFlight),
      (count) => count === wanted,
    );
  const sent = send(gate.url, '/', { method: 'POST', body: 'pay' });
  await inFlightIs(1);
  const waiting = [send(gate.url, '/'), send(gate.url, '/', { method: 'POST', body: 'pay' })];
  await inFlightIs(3);
  await gate.drain();
  expect((await sent).header('tidegate-outcome')).toBe('unknown');
  for (const { status, header } of await Promise.all(waiting)) {
    expect([status, header('tidegate-outcome')]).toEqual([502, undefined]);
  }
});

test('aborts what exceeds the drain timeout and reports the known outcome to the client', async () => {
  const upstream = await listen(() => undefined);
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 300ms}
upstreams: {api: {url: "${upstream.url}", connections: 2, queue: {maxWait: 30s}, timeout: 60s, perTryTimeout: 60s}}`);
  const read = send(gate.url, '/');
  const write = send(gate.url, '/', { method: 'POST', body: 'pay' });
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 2,
  );
  const waits = send(gate.url, '/', { method: 'POST', body: 'pay' });
  const comes = await openRaw(gate.url);
  comes.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 4,
  );
  const since = performance.now();
  await gate.drain();
  expect(performance.now() - since).toBeLessThan(15_000); // of the 30 s and 60 s that they would wait
  expect((await read).status).toBe(502);
  expect((await write).status).toBe(504);
  expect((await write).header('tidegate-outcome')).toBe('unknown');
  expect((await waits).json()).toMatchObject({ status: 503, reason: 'draining' });
  expect(await comes.ended()).toMatch(/^HTTP\/1\.1 503 /);
  expect(gate.log()).toContainEqual(expect.objectContaining({ level: 'warn', cut: 4 }));
  expect(gate.requests().map(({ status }) => status)).toEqual(expect.arrayContaining([502, 503, 503, 504]));
});

test.each([
  [503, 'status_5xx'],
  [429, 'status_429'],
])('ends a retry wait that the Retry-After of a %i caused with what is left of it', async (status, reason) => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(status, { 'Retry-After': '50' }).end());
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 1s}
upstreams: {api: {url: "${upstream.url}", timeout: 100s, retry: {maxRetryAfter: 60s}}}
`);
  const asleep = send(gate.url, '/', { method: 'PUT' });
  await eventually(
    () => gate.metric(`tidegate_retries_total{upstream="api",reason="${reason}"}`),
    (count) => count === 1,
  );
  void gate.drain();
  const rejected = await asleep;
  expect([rejected.status, rejected.json()['reason']]).toEqual([503, 'draining']);
  expect(Number(rejected.header('retry-after'))).toBeGreaterThanOrEqual(25);
  expect(upstream.hits).toHaveLength(1);
});

test('ends a retry wait that would outlast the drain, and starts none', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end('in hand'));
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 20s}
upstreams: {api: {url: "${upstream.url}", timeout: 100s, retry: {backOff: {strategy: fixed, baseInterval: 50s}}}}
`);
  const asleep = send(gate.url, '/asleep');
  const slow = await openRaw(gate.url);
  slow.write('PUT /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
  await eventually(
    () => upstream.hits,
    ({ length }) => length === 1,
  );
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 2,
  );
  await eventually(
    () => gate.metric('tidegate_retries_total{upstream="api",reason="status_5xx"}'),
    (count) => count === 1,
  );
  const drained = gate.drain();
  const rejected = await asleep;
  expect(rejected.status).toBe(503);
  expect(rejected.json()).toMatchObject({ reason: 'draining' });
  expect(rejected.header('retry-after')).toBe('1');
  expect(rejected.header('connection')).toBe('close');
  slow.write('dy');
  const answer = await slow.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toContain('in hand');
  await drained;
  expect(upstream.hits).toHaveLength(2);
});

test('makes a retry that fits into the drain', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end());
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 20s}
upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 300ms}}}}
`);
  const asleep = send(gate.url, '/');
  await eventually(
    () => upstream.hits,
    ({ length }) => length === 1,
  );
  const drained = gate.drain();
  expect((await asleep).status).toBe(200);
  await drained;
});

test('serves a request that was still arriving when the drain began, and does not let it wait for a retry', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end('in hand'));
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 25s}
upstreams: {api: {url: "${upstream.url}", timeout: 100s, retry: {backOff: {strategy: fixed, baseInterval: 50s}}}}
`);
  const other = await openRaw(gate.url);
  other.write('PUT /other HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 1,
  );
  await pause(50);
  const since = performance.now();
  const drained = gate.drain();
  await pause(50);
  client.write('\r\n');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toContain('in hand');
  expect(answer).toContain('Connection: close');
  other.write('dy');
  await drained;
  expect(performance.now() - since).toBeLessThan(12_000); // of a drain timeout of 25 s
});

test('ends in time with ten thousand keep-alive connections, some of them with requests', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    setTimeout(() => response.end('answered'), 300);
  });
  // A separate process, because one process may not open both ends of so many connections.
  const running = startProcess(['--upstream', upstream.url, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']);
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const url = String(lines.find(({ msg }) => msg === 'listening')?.['url']);
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const open = async (): Promise<Socket> => {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  while (sockets.length < 10_000) await Promise.all(Array.from({ length: 200 }, open));

  const agent = keepAlive();
  const busy = Array.from({ length: 50 }, () => send(url, '/', { agent }));
  await eventually(
    () => upstream.hits.length,
    (hits) => hits === 50,
  );
  const since = performance.now();
  running.child.kill('SIGINT');
  const answers = await Promise.all(busy);
  expect(answers.map(({ body }) => body.toString())).toEqual(Array.from({ length: 50 }, () => 'answered'));
  expect((await running.ended).code).toBe(0);
  expect(performance.now() - since).toBeLessThan(10_000); // of a drain timeout of 25 s
});

test('close() returns at once, whatever is in flight', async () => {
  const upstream = await listen(() => undefined);
  const gate = await startTidegate(`
drain: {delay: 0, timeout: 50s}
upstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s}}`);
  const hanging = send(gate.url, '/').catch(() => 'cut');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 1,
  );
  const since = performance.now();
  await gate.close();
  expect(performance.now() - since).toBeLessThan(25_000); // of a drain timeout of 50 s
  expect(await hanging).toBe('cut');
});
