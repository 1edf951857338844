import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { pause } from '../support/pause.ts';
import { openRaw } from '../support/raw.ts';
import { begin } from '../support/send.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

const inFlight = 'tidegate_requests_in_flight{route="/"}';

test('headers that do not come in time are answered with 408', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`limits: {headers: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toContain('"reason":"headers_timeout"');
  expect(upstream.hits).toHaveLength(0);
});

test('a pause within a body is answered with 408, before anything is sent', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf');
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toContain('"reason":"body_idle"');
  expect(upstream.connections()).toBe(0);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 0,
  );
  expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
  expect(gate.requests()).toMatchObject([{ status: 408, reason: 'body_idle' }]);
});

test('so is a pause within a body that is streamed, and the upstream is let go', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`limits: {bodyIdle: 200ms}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n');
  client.write(Buffer.alloc(100_000));
  const answer = await client.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 0,
  );
  await eventually(
    () => upstream.stats().answered,
    ({ gone }) => gone === 1,
  );
});

test('a slow upload that never pauses for long is served, however long it takes', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
limits: {bodyIdle: 500ms}
upstreams: {api: {url: "${upstream.url}", timeout: 300ms, perTryTimeout: 300ms}}
`);
  for (const piece of [100, 20_000]) {
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const outgoing = begin(gate.url, '/echo', { method: 'POST', chunked: true }, ({ statusCode }) =>
        resolve(statusCode),
      );
      outgoing.on('error', reject);
      void (async () => {
        for (let i = 0; i < 5; i += 1) {
          outgoing.write(Buffer.alloc(piece));
          await pause(120);
        }
        outgoing.end();
      })();
    });
    expect(await answered).toBe(200);
  }
});

test('a client that was not understood and never closes its side is let go', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const { hostname, port } = new URL(gate.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  onTestFinished(() => {
    socket.destroy();
  });
  let broken = false;
  socket.on('error', () => (broken = true));
  socket.resume();
  socket.write('NONSENSE\r\n\r\n');
  await once(socket, 'end');
  await eventually(() => {
    socket.write('x');
    return broken;
  }, Boolean);
  expect(broken).toBe(true);
});

test('a client that does not read is let go when nothing has moved for as long as a stream may pause', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end(Buffer.alloc(50_000_000)));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", streamIdle: 300ms}}`);
  const client = await openRaw(gate.url);
  client.socket.pause();
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [line] = await eventually(gate.requests, ({ length }) => length === 1);
  expect(line).toMatchObject({ status: 200, cut: true });
});
