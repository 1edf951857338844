/** Attempts that time out before they have a connection have no effect later. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sha256 } from '../../support/upstreams/http-upstream.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { pause } from '../../support/pause.ts';
import { type Relay, startRelay } from '../../support/relay/relay.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';

test('uses no connection for requests that time out in the queue, and does not send them', async () => {
  const held = new Set<ServerResponse>();
  const origin = await startRecordingUpstream(({ target }, response) => {
    if (target === '/slow') held.add(response);
    else response.end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${origin.url}", connections: 2, retry: {attempts: 1}}}
routes: [{path: /slow, upstream: api}, {path: /, upstream: api, perTryTimeout: 600ms, timeout: 600ms}]
`);
  const slow = [send(gate.url, '/slow'), send(gate.url, '/slow')];
  await eventually(
    () => held.size,
    (count) => count === 2,
  );
  const waiting = await Promise.all(Array.from({ length: 40 }, () => send(gate.url, '/quick')));
  expect(waiting.filter(({ status }) => status < 400)).toEqual([]);
  for (const response of held) response.end();
  await Promise.all(slow);
  await eventually(
    async () => (await send(gate.url, '/quick')).status,
    (status) => status === 200,
  );
  expect(origin.connections()).toBe(2);
  expect(origin.received).toHaveLength(3);
});

test.each([true, false])('sends the whole upload with the next attempt, chunked: %s', async (chunked) => {
  const { url, received } = await startTlsUpstream();
  const relay = await startRelay(url);
  onTestFinished(() => relay.close());
  relay.injectFaults({ up: { delay: 3_600_000 } }); // no handshake completes
  const gate = await startTidegate(`
upstreams:
  api:
    url: "${relay.url.replace('http:', 'https:')}"
    tls: {insecure: true}
    perTryTimeout: 1500ms
    retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 0ms}}
`);
  const body = randomBytes(1024 * 1024);
  const answer = send(gate.url, '/', { method: 'POST', chunked, body });
  await eventually(
    () => relay.links.length,
    (count) => count === 2,
  );
  // The abandoned attempt's connection opens first.
  const [first, second] = relay.links;
  first?.spoil({});
  await pause(200);
  second?.spoil({});
  expect((await answer).status).toBe(200);
  expect(received).toEqual([sha256(body)]);
});

describe.each(['HTTP/1.1', 'HTTP/2'])('a connection over %s that opens late', (protocol) => {
  /** Starts an upstream, and a relay to it that holds back each handshake until it is released. */
  async function start(settings: string, retry: string, answer?: Answer) {
    const upstream = await startTlsUpstream(answer);
    const relay = await startRelay(upstream.url);
    onTestFinished(() => relay.close());
    const gate = await startTidegate(`
upstreams:
  api:
    url: "${relay.url.replace('http:', 'https:')}"
    tls: {insecure: true}
    http2: ${protocol === 'HTTP/2'}
    ${settings}
    retry: {${retry}, backOff: {strategy: fixed, baseInterval: 1ms}}
`);
    return { ...upstream, relay, gate };
  }

  const STALLED = { up: { delay: 3_600_000 } };

  async function connecting(relay: Relay, connections: number): Promise<void> {
    await eventually(
      () => relay.taken,
      (count) => count === connections,
    );
  }

  /** Completes the handshakes; then a request reaches the upstream after everything that was sent before. */
  async function release(relay: Relay, gate: Tidegate): Promise<void> {
    relay.clearFaults();
    expect((await send(gate.url, '/after')).status).toBe(200);
  }

  test.each(['POST', 'PUT'])('too late for a response to a %s without a body: nothing is sent', async (method) => {
    // A write needs 1 s of its 2 s, so the last moment to send it is after 1 s.
    const { received, relay, gate } = await start('timeout: 2s', 'attempts: 1, minAttemptTime: 5s');
    relay.injectFaults(STALLED);
    const answer = send(gate.url, '/', { method, body: '' });
    await connecting(relay, 1);
    await pause(1200);
    await release(relay, gate);
    const { status, header } = await answer;
    expect([status, header('tidegate-outcome')]).toEqual([502, undefined]);
    expect(received).toEqual([sha256('')]); // of the request after it
  });

  test('too late for the retry of a write: the outcome stays known', async () => {
    const { received, relay, gate } = await start(
      'timeout: 3s',
      'attempts: 2, minAttemptTime: 1500ms',
      (nth, response) => {
        if (nth > 1) return response.end();
        response.statusCode = 503;
        // The connection ends, so the retry needs another.
        if (protocol === 'HTTP/2') response.stream.session?.close();
        else response.setHeader('Connection', 'close');
        relay.injectFaults(STALLED, 'new');
        return response.end();
      },
    );
    const answer = send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'order-1'], body: '' });
    await connecting(relay, 2);
    await pause(1700);
    await release(relay, gate);
    const { status, header } = await answer;
    expect([status, header('tidegate-outcome'), header('tidegate-attempts')]).toEqual([502, undefined, '2']);
    expect(received).toHaveLength(2); // the first attempt, and the request after it
  });

  test.each(['timeout: 2s', 'perTryTimeout: 2s'])(
    'does not restart the time of a request with a body (%s)',
    async (time) => {
      const { received, relay, gate } = await start(time, 'attempts: 1, minAttemptTime: 0', () => undefined);
      relay.injectFaults(STALLED);
      const answered: string[] = [];
      const note = (name: string) => (): void => void answered.push(name);
      const write = send(gate.url, '/', { method: 'POST', body: 'x' }).then(note('with a body'));
      await connecting(relay, 1);
      await pause(1000);
      const read = send(gate.url, '/').then(note('a second later'));
      relay.clearFaults();
      await Promise.all([write, read]);
      expect(answered).toEqual(['with a body', 'a second later']);
      expect(received).toContain(sha256('x'));
    },
  );

  test('too late for this attempt of a write: the next one uses it', async () => {
    const { received, relay, gate } = await start('perTryTimeout: 1s', 'attempts: 3, minAttemptTime: 5s');
    relay.injectFaults(STALLED);
    const answer = send(gate.url, '/', { method: 'POST', body: 'x' });
    await connecting(relay, 1);
    await pause(700);
    relay.clearFaults();
    const { status, header } = await answer;
    expect([status, Number(header('tidegate-attempts'))]).toEqual([200, expect.toSatisfy((count) => count > 1)]);
    expect(received).toEqual([sha256('x')]);
  });
});

type Answer = (nth: number, response: Http2ServerResponse) => unknown;

/** Records the digests of the bodies that arrived whole. */
async function startTlsUpstream(
  answer: Answer = (_nth, response) => response.end('{}'),
): Promise<{ readonly url: string; readonly received: readonly string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-tls-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', ...made, '-subj', '/CN=upstream'], { stdio: 'pipe' });
  const received: string[] = [];
  const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      received.push(sha256(Buffer.concat(chunks)));
      answer(received.length, response);
    });
  };
  const credentials = { key: readFileSync(key), cert: readFileSync(cert) };
  const server = createSecureServer({ ...credentials, allowHTTP1: true }, onRequest);
  server.on('sessionError', () => undefined);
  rmSync(folder, { recursive: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('secureConnection', (socket: Socket) => void sockets.add(socket));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}
