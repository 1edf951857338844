import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const gone = (method: string) =>
  `tidegate_requests_total{route="/",method="${method}",code="other",outcome="client_gone"}`;
/** Requests of clients that disconnect while they are queued. */
const LEFT = 20;
const inFlight = 'tidegate_requests_in_flight{route="/"}';

/** Holds every request, and counts those whose connection closed. */
async function startHolding() {
  let closed = 0;
  let held = 0;
  const upstream = await listen((request, response) => {
    held += 1;
    request.resume();
    request.on('error', () => undefined);
    response.on('close', () => (closed += 1));
  });
  return { ...upstream, closed: () => closed, held: () => held };
}

describe('when the client disconnects', () => {
  test('cancels the attempt within 100 ms', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await sendAndLeave(gate.url, '/', {}, () => upstream.held() === 1);
    await pause(100);
    // On a slow machine, timers and socket events are late together.
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(upstream.closed()).toBe(1);
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === 1,
    );
    expect(await gate.metric(inFlight)).toBe(0);
    expect(await gate.metric('tidegate_upstream_attempts_total{upstream="api",attempt="1",code="aborted"}')).toBe(1);
    expect(gate.requests()).toMatchObject([{ status: 0, outcome: 'client_gone', reason: 'client_gone', attempts: 1 }]);
    expect(gate.view().limits[0]?.inFlight).toBe(0);
  });

  test('warns that a write may have taken effect which was at the upstream', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await sendAndLeave(gate.url, '/', { method: 'POST', body: 'pay' }, () => upstream.held() === 1);
    await eventually(gate.requests, ({ length }) => length === 1);
    expect(gate.requests()).toMatchObject([{ level: 'warn', status: 0, outcome: 'client_gone', unknown: true }]);
  });

  test('treats a half-closed connection as a client that disconnected', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(upstream.held, (held) => held === 1);
    client.socket.end();
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === 1,
    );
    expect(upstream.closed()).toBe(1);
  });

  test('removes the request from the queue and never sends it', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", timeout: 2m, rateLimit: {initialRate: 0.5/s}, queue: {maxWait: 2m}}}
`);
    await send(gate.url, '/first');
    let isAll = false;
    const all = () => (isAll ||= gate.view().limits[0]?.queued === LEFT);
    await Promise.all(Array.from({ length: LEFT }, () => sendAndLeave(gate.url, '/left', {}, all)));
    await eventually(
      () => gate.view().limits[0]?.queued,
      (queued) => queued === 0,
    );
    // The next request takes the first place, so it need not wait for 20 turns, which would take 40 s.
    const next = await send(gate.url, '/next');
    expect(next.took).toBeLessThan(20_000);
    expect(upstream.hits.map(({ target }) => target)).toEqual(['/first', '/next']);
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === LEFT,
    );
  });

  test('does not send a retry that is waiting for its backoff', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.writeHead(503).end());
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 1s}}}}
`);
    const retries = 'tidegate_retries_total{upstream="api",reason="status_5xx"}';
    await sendAndLeave(gate.url, '/', {}, async () => (await gate.metric(retries)) === 1);
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === 1,
    );
    expect(await gate.metric(inFlight)).toBe(0);
    await pause(1100);
    expect(upstream.hits).toHaveLength(1);
    expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(1);
  });

  test('closes the upstream request during an upload, and does not count it as an upstream failure', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const outgoing = begin(gate.url, '/', { method: 'POST', chunked: true });
    outgoing.write(Buffer.alloc(200_000));
    await eventually(upstream.held, (held) => held === 1);
    outgoing.destroy();
    await eventually(upstream.closed, (count) => count === 1);
    await eventually(
      () => gate.metric(gone('POST')),
      (count) => count === 1,
    );
    expect(await gate.metric('tidegate_upstream_attempts_total{upstream="api",attempt="1",code="aborted"}')).toBe(1);
  });

  test('sends nothing upstream before the body has arrived', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const outgoing = begin(gate.url, '/', { method: 'POST', headers: ['Content-Length', '100'] });
    outgoing.write('only a part');
    await eventually(
      () => gate.metric(inFlight),
      (count) => count === 1,
    );
    outgoing.destroy();
    await eventually(
      () => gate.metric(gone('POST')),
      (count) => count === 1,
    );
    expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
    expect(upstream.connections()).toBe(0);
  });

  test('closes the upstream request during a response', async () => {
    let closed = false;
    const upstream = await listen((_request, response) => {
      response.writeHead(200).write('some');
      response.on('close', () => (closed = true));
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const outgoing = begin(gate.url, '/', {});
    const answered = once(outgoing, 'response');
    outgoing.end();
    const [incoming] = (await answered) as [IncomingMessage];
    incoming.on('error', () => undefined);
    await once(incoming, 'data');
    outgoing.destroy();
    await eventually(() => closed, Boolean);
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ status: 200, outcome: 'forwarded', cut: true });
    expect(gate.view().limits[0]?.inFlight).toBe(0);
  });

  test('never sends a request pipelined behind another', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(upstream.held, (held) => held === 1);
    client.socket.destroy();
    await eventually(upstream.closed, (count) => count === 1);
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === 1,
    );
    expect(await gate.metric(inFlight)).toBe(0);
    expect(upstream.held()).toBe(1);
  });

  test('does not mark the upstream as failing after ten disconnects', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await Promise.all(Array.from({ length: 10 }, () => sendAndLeave(gate.url, '/', {}, () => upstream.held() === 10)));
    await eventually(
      () => gate.metric(gone('GET')),
      (count) => count === 10,
    );
    expect(gate.view().limits[0]?.state).toBe('open');
  });
});

describe('a keyed write whose client disconnects', () => {
  const script = ['X-Practice-Id', 'w', 'X-Practice-Script', '503; delay=500, 200; delay=500', 'Idempotency-Key', 'w'];
  const yaml = (url: string, onClientGone: string) =>
    `upstreams: {api: {url: "${url}", retry: {onClientGone: ${onClientGone}, backOff: {strategy: fixed, baseInterval: 10ms}}}}`;

  test('is completed, retries included, where the configuration says so', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(yaml(upstream.url, 'finish'));
    await sendAndLeave(
      gate.url,
      '/charges',
      { method: 'POST', headers: script, body: 'amount=5' },
      () => upstream.attempts('w') === 1,
    );
    const [line] = await eventually(gate.requests, ({ length }) => length === 1);
    expect(line).toMatchObject({ attempts: 2 });
    expect(upstream.ledger.charges).toBe(1);
    expect(await gate.metric(inFlight)).toBe(0);
    expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
    expect(gate.view().limits[0]?.inFlight).toBe(0);
    const again = await send(gate.url, '/charges', {
      method: 'POST',
      headers: ['Idempotency-Key', 'w'],
      body: 'amount=5',
    });
    expect(again.header('idempotent-replayed')).toBe('true');
  });

  test('is cancelled by default', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(yaml(upstream.url, 'cancel'));
    await sendAndLeave(
      gate.url,
      '/charges',
      { method: 'POST', headers: script, body: 'amount=5' },
      () => upstream.attempts('w') === 1,
    );
    await eventually(
      () => gate.metric(gone('POST')),
      (count) => count === 1,
    );
    await pause(700);
    expect(upstream.attempts('w')).toBe(1);
  });
});
