import { expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { heldBytes } from '../../support/heap.ts';
import { FLAG, FRAME, frame, literals, openFrames } from '../../support/clients/http2-client.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { begin, keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const REPLAY = 'tidegate_replay_buffer_bytes';
const reached = 'tidegate_bound_reached_total{bound="replay_memory"}';

test('bounds the memory for bodies kept for retries, and sends the others once and whole', async () => {
  const origin = await startRecordingUpstream((_, response) => response.writeHead(503).end());
  const gate = await startTidegate(`
log: {level: silent}
limits: {replayMemory: 256KiB}
upstreams:
  api:
    url: "${origin.url}"
    retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1s}, budget: {ratio: 10, burst: 1000}}
    rateLimit: {scope: client}
clients: {key: ["header:x-client"]}
`);
  const agent = keepAlive();
  let most = 0;
  const done = new AbortController();
  const watch = (async () => {
    while (!done.signal.aborted) most = Math.max(most, await gate.metric(REPLAY));
  })();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      send(gate.url, '/', {
        method: 'POST',
        agent,
        headers: ['X-Client', String(i), 'Idempotency-Key', String(i)],
        body: Buffer.alloc(40_000, i),
      }),
    ),
  );
  done.abort();
  await watch;
  expect(most).toBeGreaterThan(128 * 1024);
  expect(most).toBeLessThanOrEqual(256 * 1024);
  expect(await gate.metric(reached)).toBeGreaterThan(0);
  const attempts = answers.map((answer) => answer.header('tidegate-attempts'));
  expect(new Set(attempts)).toEqual(new Set(['1', '2']));
  expect(await gate.metric('tidegate_retry_outcomes_total{upstream="api",outcome="body_too_large"}')).toBe(
    attempts.filter((count) => count === '1').length,
  );
  for (const { body } of origin.received) {
    expect(body.length).toBe(40_000);
    expect(body.equals(Buffer.alloc(40_000, body[0]))).toBe(true);
  }
  expect(await gate.metric(REPLAY)).toBe(0);
});

test('releases what was read of an oversized body once it has been forwarded', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {replayLimit: 16KiB}}}`);
  const outgoing = begin(gate.url, '/echo', { method: 'POST', chunked: true });
  outgoing.write(Buffer.alloc(10_000));
  await eventually(
    () => gate.metric(REPLAY),
    (bytes) => bytes >= 10_000,
  );
  outgoing.write(Buffer.alloc(10_000));
  await eventually(
    () => gate.metric(REPLAY),
    (bytes) => bytes === 0,
  );
  expect(await gate.metric('tidegate_requests_in_flight{route="/"}')).toBe(1);
  outgoing.destroy();
});

/** A body of this many bytes, each a chunk of its own. */
function tinyChunks(count: number): Buffer {
  return Buffer.from('1\r\nx\r\n'.repeat(count));
}

/** Starts uploads of tiny chunks from several clients, none complete; resolves when they have been read. */
async function sendTinyChunks(url: string, clients: number, head: string, packets: Buffer[]): Promise<void> {
  await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      const client = await openRaw(url);
      client.write(`POST / HTTP/1.1\r\nHost: x\r\nX-Client: ${i}\r\n${head}\r\n\r\n`);
      for (const packet of packets) {
        await new Promise<void>((resolve, reject) => {
          client.socket.write(packet, (error) => (error ? reject(error) : resolve()));
        });
      }
    }),
  );
}

test('uses little more memory than its bytes for a body that arrives in tiny pieces', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`log: {level: silent}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const packets = Array.from({ length: 6 }, () => tinyChunks(10_000));
  const before = heldBytes();
  await sendTinyChunks(gate.url, 10, 'Transfer-Encoding: chunked', packets);
  await eventually(
    () => gate.metric(REPLAY),
    (bytes) => bytes >= 10 * 60_000,
  );
  // The same number of Buffers of 200 bytes each would take 120 MB.
  expect(heldBytes() - before).toBeLessThan(8e6);
});

test('uses as little for one that waits unread in the queue', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
log: {level: silent}
upstreams:
  api:
    url: "${upstream.url}"
    timeout: 2h
    retry: {replayLimit: 0}
    rateLimit: {initialRate: 1/m, maxRate: 1/m, minRate: 1/m}
    queue: {maxWait: 2h}
clients: {key: ["header:x-client"]}
`);
  const packets = Array.from({ length: 6 }, () => tinyChunks(10_000));
  await send(gate.url, '/');
  const before = heldBytes();
  await sendTinyChunks(gate.url, 10, 'Transfer-Encoding: chunked', packets);
  await eventually(
    () => gate.view().limits[0]?.queued,
    (count) => count === 10,
  );
  expect(heldBytes() - before).toBeLessThan(8e6);
});

test('keeps only the bytes of a body over HTTP/2, not the TLS records around them', async () => {
  const certificates = makeCertificates();
  onTestFinished(() => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const upstream = await startUpstream();
  const { path, read } = certificates;
  const gate = await startTidegate(`
log: {level: silent}
listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"}}
`);
  const STREAMS = 90;
  const JUNK = 15_000;
  const UNKNOWN = 0xfa; // RFC 9113 §4.1: frames of an unknown type are ignored
  const head = literals({ ':method': 'POST', ':scheme': 'https', ':path': '/echo', ':authority': 'x' });
  const hold = async (junk: number): Promise<number> => {
    const { socket } = await openFrames(gate.url, read('ca.crt'));
    const kept = await gate.metric(REPLAY);
    const before = heldBytes();
    for (let stream = 1; stream < 2 * STREAMS; stream += 2) {
      const asked = frame(FRAME.headers, FLAG.endHeaders, stream, head);
      socket.write(
        Buffer.concat([
          asked,
          frame(FRAME.data, 0, stream, Buffer.from('x')),
          frame(UNKNOWN, 0, 0, Buffer.alloc(junk)),
        ]),
      );
    }
    await eventually(
      () => gate.metric(REPLAY),
      (bytes) => bytes === kept + STREAMS,
    );
    return heldBytes() - before;
  };
  await hold(0);
  const plain = await hold(0);
  expect((await hold(JUNK)) - plain).toBeLessThan((STREAMS * JUNK) / 2);
});

test('forwards a body that arrives in tiny pieces unchanged', async () => {
  const origin = await startRecordingUpstream();
  const gate = await startTidegate(
    `upstreams: {api: {url: "${origin.url}", retry: {replayLimit: 8KiB}, timeout: 20s, rateLimit: {initialRate: 2/s, maxRate: 2/s}, queue: {maxWait: 10s}}}`,
  );
  const text = Array.from({ length: 9000 }, (_, i) => String(i)).join(',');
  const bodies = [text.slice(0, 5000), text.slice(0, 8192), text.slice(0, 8193), text];
  await Promise.all(
    bodies.map(async (body) => {
      const client = await openRaw(gate.url);
      client.write('POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (let at = 0; at < body.length; at += 7) {
        const piece = body.slice(at, at + 7);
        client.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
      }
      client.write('0\r\n\r\n');
      expect(await client.ended(15_000)).toMatch(/^HTTP\/1\.1 200 /);
    }),
  );
  expect(origin.received.map(({ body }) => body.toString()).toSorted()).toEqual(bodies.toSorted());
});
