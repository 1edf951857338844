/** The repeat of a write whose upload is not over when the upstream forgets the key: the rest must not complete a new write. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { Http2UpstreamStream } from '../../../src/http/upstream/http2/http2-upstream-stream.ts';
import type { AttemptListener } from '../../../src/http/upstream/attempt-listener.ts';
import { UpstreamAttempt } from '../../../src/http/upstream/upstream-attempt.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { openHttp2, readHttp2Answer } from '../../support/clients/http2-client.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const MIB = 1024 * 1024;
const INTERNAL_ERROR = 2;

interface Unread {
  readonly url: string;
  /** Reads the repeat. @returns bytes of it, and whether its end has arrived, once nothing more arrives */
  readonly read: () => Promise<{ readonly bytes: number; readonly isComplete: boolean }>;
}

/** Resets the first request, and reads the second one only when asked. */
async function startHttp1(): Promise<Unread> {
  let requests = 0;
  let read: Unread['read'] | undefined;
  const { url } = await listen((request) => {
    request.on('error', () => undefined);
    requests += 1;
    if (requests === 1) return void request.resume().on('end', () => request.socket.resetAndDestroy());
    let bytes = 0;
    read = () =>
      new Promise((resolve) => {
        request.on('data', (chunk: Buffer) => (bytes += chunk.length));
        request.on('close', () => resolve({ bytes, isComplete: request.complete }));
      });
  });
  return { url, read: async () => (read === undefined ? { bytes: 0, isComplete: false } : read()) };
}

async function startOverHttp2(hasInterimResponse = false): Promise<Unread> {
  let read: Unread['read'] | undefined;
  const { url } = await startHttp2(identity, (stream, nth) => {
    if (nth === 1) return void stream.resume().on('end', () => stream.close(INTERNAL_ERROR));
    if (hasInterimResponse) stream.additionalHeaders({ ':status': 103 });
    let bytes = 0;
    read = () =>
      new Promise((resolve) => {
        stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
        stream.on('end', () => resolve({ bytes, isComplete: !stream.aborted && stream.rstCode === 0 }));
        stream.on('close', () => resolve({ bytes, isComplete: false }));
      });
  });
  return { url, read: async () => (read === undefined ? { bytes: 0, isComplete: false } : read()) };
}

// The repeat must have arrived before the ttl: the large body takes seconds on a busy machine.
test.each([
  ['streamed over HTTP/2', () => startOverHttp2(), 100_000, '64KiB', '2s'],
  ['buffered over HTTP/2', () => startOverHttp2(), 100_000, '1MiB', '2s'],
  ['streamed over HTTP/2 after a 103', () => startOverHttp2(true), 100_000, '64KiB', '2s'],
  ['buffered over HTTP/2 after a 103', () => startOverHttp2(true), 100_000, '1MiB', '2s'],
  ['buffered over HTTP/1.1', startHttp1, 24 * MIB, '32MiB', '6s'],
])(
  'a body that has arrived but is not written is not sent after the ttl: %s',
  async (_, start, length, replayLimit, ttl) => {
    const upstream = await start();
    const more = upstream.url.startsWith('https') ? `, http2: true, tls: {ca: ${certificates.path('ca.crt')}}` : '';
    const gate = await startTidegate(`
limits: {replayMemory: 128MiB}
upstreams: {api: {url: "${upstream.url}"${more}, timeout: 5m, perTryTimeout: 5m, retry: {attempts: 1, replayLimit: ${replayLimit}}, idempotency: {ttl: ${ttl}}}}`);
    const pay = async () => {
      const sent = { method: 'POST', headers: ['Idempotency-Key', 'k'], body: Buffer.alloc(length, 'x') };
      const answer = await send(gate.url, '/', sent);
      return [answer.status, answer.header('tidegate-outcome')];
    };
    expect(await pay()).toEqual([504, 'unknown']);
    expect(await pay()).toEqual([504, 'unknown']);
    await eventually(
      () => gate.requests().length,
      (lines) => lines === 2,
    );
    const { bytes, isComplete } = await upstream.read();
    expect(bytes).toBeLessThan(length);
    expect(isComplete).toBe(false);
  },
);

/** Resets the first request at its end if it should. Responds to the others before it reads their bodies. */
async function startEarly(resetsFirst: boolean) {
  const events: string[] = [];
  let requests = 0;
  const { url } = await listen((request, response) => {
    const n = (requests += 1);
    events.push(`head ${n}`);
    request.on('error', () => undefined);
    if (n > 1 || !resetsFirst) response.writeHead(200).write('early');
    request.resume().on('end', () => {
      events.push(`end ${n}`);
      if (n === 1 && resetsFirst) request.socket.resetAndDestroy();
      else response.end();
    });
  });
  return { url, events };
}

/** A streamed POST whose last byte comes when it is completed. @returns the status, and whether the response arrived as a whole */
function payInParts(url: string) {
  const head = { method: 'POST', headers: ['Idempotency-Key', 'k', 'Content-Length', '100000'] };
  const ended = Promise.withResolvers<[status: number | undefined, isWhole: boolean]>();
  const answered = Promise.withResolvers<undefined>();
  const outgoing = begin(url, '/', head, (incoming) => {
    answered.resolve(undefined);
    incoming.on('error', () => undefined).on('close', () => ended.resolve([incoming.statusCode, incoming.complete]));
    incoming.resume();
  });
  outgoing.write(Buffer.alloc(99_999, 'x'));
  return { answered: answered.promise, ended: ended.promise, complete: () => outgoing.end('x') };
}

const pay = async (url: string) => {
  const answer = await send(url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'x' });
  return [answer.status, answer.header('tidegate-outcome')];
};

test('a body that is not complete at the end of the ttl is cut although its response has begun', async () => {
  const upstream = await startEarly(true);
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {ttl: 2s}}}`,
  );
  expect(await pay(gate.url)).toEqual([504, 'unknown']);
  const repeat = payInParts(gate.url);
  expect(await repeat.ended).toEqual([200, false]);
  repeat.complete();
  expect(await pay(gate.url)).toEqual([409, 'unknown']); // its key has expired
  expect(upstream.events).toEqual(['head 1', 'end 1', 'head 2']);
});

test('a request that is still uploaded has its key although its response has begun', async () => {
  const upstream = await startEarly(false);
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {ttl: 1m}}}`,
  );
  const first = payInParts(gate.url);
  await first.answered;
  const repeat = pay(gate.url);
  await eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (inFlight) => inFlight >= 2,
  );
  expect(upstream.events).toEqual(['head 1']);
  first.complete();
  expect([await first.ended, await repeat]).toEqual([
    [200, true],
    [200, undefined],
  ]);
  expect(upstream.events).toEqual(['head 1', 'end 1', 'head 2', 'end 2']);
});

test('with concurrent: pass, a first request that is not complete at the end of the ttl is cut', async () => {
  const upstream = await startEarly(false);
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {ttl: 2s, concurrent: pass}}}`,
  );
  const first = payInParts(gate.url);
  await first.answered;
  expect(await pay(gate.url)).toEqual([200, undefined]);
  expect(await first.ended).toEqual([200, false]);
  first.complete();
  expect(upstream.events).toEqual(['head 1', 'head 2', 'end 2']);
});

test('a body whose end comes over HTTP/2 after the ttl is not completed', async () => {
  let completed = 0;
  const upstream = await startHttp2(identity, (stream, nth) => {
    stream.resume().on('end', () => {
      if (stream.aborted) return;
      completed += 1;
      if (nth === 1) stream.close(INTERNAL_ERROR);
      else stream.respond({ ':status': 201 }, { endStream: true });
    });
  });
  const { path, read } = certificates;
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${path('ca.crt')}}, retry: {attempts: 1}, idempotency: {ttl: 2s}}}`);
  const session = await openHttp2(gate.url, read('ca.crt'));
  const length = 100_000; // streamed
  const pay = (endsAfter: Promise<unknown>) => {
    const head = { ':method': 'POST', ':path': '/', 'content-length': length, 'idempotency-key': 'k' };
    const stream = session.request(head);
    stream.write(Buffer.alloc(length, 'x'));
    void endsAfter.then(() => stream.end());
    return readHttp2Answer(stream);
  };
  expect((await pay(Promise.resolve())).headers['tidegate-outcome']).toBe('unknown');
  const answered = Promise.withResolvers<undefined>();
  const repeat = pay(answered.promise); // ends once it has its response
  const { status, headers } = await repeat;
  answered.resolve(undefined);
  expect([status, headers['tidegate-outcome']]).toEqual([504, 'unknown']);
  expect(completed).toBe(1);
});

test('a request without a body is not flushed while its head waits in an HTTP/2 connection that the upstream does not read', async () => {
  const sockets: Socket[] = [];
  const server = createTls({ ...identity, ALPNProtocols: ['h2'] }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined).pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const origin = `https://127.0.0.1:${port}`;
  const session = connectHttp2(origin, { ca: certificates.read('ca.crt') });
  session.on('error', () => undefined);
  onTestFinished(() => {
    session.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(session, 'connect');
  const carrier = { session, lastStreamId: undefined, errorCode: undefined, error: undefined };
  const nothing = (): undefined => undefined;
  const owner: AttemptListener = {
    ...{ onInterimResponse: nothing, onHead: nothing, onFailure: nothing, onProgress: nothing, onBodyEnd: nothing },
    ...{ onBodyAborted: nothing, onConnectionReleased: nothing },
  };
  const begin = (): UpstreamAttempt => {
    const sent = { origin, method: 'POST' as const, path: '/', headers: ['host', 'x'], servername: '', body: null };
    const attempt = new UpstreamAttempt(owner, sent, performance);
    new Http2UpstreamStream(attempt, {
      ...carrier,
      ...{ onResponse: nothing, onClosed: nothing, onUploadProgress: nothing },
    }).start();
    return attempt;
  };
  const first = begin();
  await eventually(
    () => first.isPartlyWritten,
    (waits) => !waits,
  );
  // Heads that the system buffers no more, because nobody reads them.
  const large = 'x'.repeat(16_000);
  await eventually(
    () => {
      for (let i = 0; i < 100; i += 1) {
        session.request({ ':path': '/', [`x-${i}`]: large, 'x-b': large }).on('error', nothing);
      }
      return (session.state.outboundQueueSize ?? 0) > 0;
    },
    (isBlocked) => isBlocked,
  );
  expect(begin().isPartlyWritten).toBe(true);
});
