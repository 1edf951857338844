/** Clients that reset their streams over HTTP/2: whatever the code, a response that was not sent whole was not delivered. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FLAG, FRAME, frame, literals, openFrames } from '../../support/clients/http2-client.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

const certificates = makeCertificates();
let ca: string;

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  ca = certificates.read('ca.crt');
});
afterAll(() => certificates.remove());

const inFlight = 'tidegate_requests_in_flight{route="/"}';
/** SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2): how much of each response the client takes before it updates a window. */
const INITIAL_WINDOW_SIZE = 4;

/** Answers /trailers with trailers and without a length, /held never, and all else with 100 bytes. */
async function start(settings = '') {
  let held = 0;
  const upstream = await listen((request, response) => {
    response.on('error', () => undefined);
    request.on('error', () => undefined);
    if (request.url === '/held') return void (held += 1);
    request.resume();
    const body = 'x'.repeat(100);
    if (request.url !== '/trailers') return void response.writeHead(200, { 'Content-Length': 100 }).end(body);
    response.writeHead(200, { Trailer: 'X-Sum' });
    response.write(body);
    response.addTrailers({ 'X-Sum': '42' });
    response.end();
  });
  const { path } = certificates;
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"${settings}}}`);
  return { gate, held: () => held };
}

/** Opens a connection whose client takes this much of each response. */
async function openWithWindow(url: string, bytes: number) {
  const client = await openFrames(url, ca);
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(INITIAL_WINDOW_SIZE, 0);
  settings.writeUInt32BE(bytes, 2);
  client.socket.write(frame(FRAME.settings, 0, 0, settings));
  return client;
}

const head = (method: string, path: string) =>
  literals({ ':method': method, ':scheme': 'https', ':path': path, ':authority': '127.0.0.1' });
const reset = (stream: number, code: number) => frame(FRAME.reset, 0, stream, encodeUint32s(code));

// Codes of RFC 9113 §7: NO_ERROR, which resembles a regular end most, and CANCEL.
describe.each([0, 8])('a reset with code %i', (code) => {
  test.each([
    ['GET', '/'],
    ['POST', '/'],
    ['GET', '/trailers'],
    ['POST', '/trailers'],
  ])('before the client has taken the response to %s %s cuts the response', async (method, path) => {
    const { gate } = await start();
    const { socket, frames } = await openWithWindow(gate.url, 10);
    const flags = method === 'GET' ? FLAG.endHeaders | FLAG.endStream : FLAG.endHeaders;
    socket.write(frame(FRAME.headers, flags, 1, head(method, path)));
    if (method === 'POST') socket.write(frame(FRAME.data, FLAG.endStream, 1, Buffer.alloc(10)));
    await eventually(
      () => frames,
      (seen) => seen.some(({ type }) => type === FRAME.data),
    );
    socket.write(reset(1, code));
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ level: 'warn', path, status: 200, cut: true }]);
    expect(await gate.metric(inFlight)).toBe(0);
  });

  test('before the client has taken a response that precedes the end of its upload cuts the response', async () => {
    const { gate } = await start(', retry: {replayLimit: 1KiB}');
    const { socket, frames } = await openWithWindow(gate.url, 10);
    socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head('POST', '/')));
    socket.write(frame(FRAME.data, 0, 1, Buffer.alloc(4000)));
    await eventually(
      () => frames,
      (seen) => seen.some(({ type }) => type === FRAME.data),
    );
    socket.write(reset(1, code));
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ level: 'warn', path: '/', status: 200, cut: true }]);
    expect(await gate.metric(inFlight)).toBe(0);
  });

  test('ends a request whose upload nothing reads', async () => {
    const { gate } = await start(
      ', retry: {replayLimit: 1KiB}, rateLimit: {initialRate: 0.5/s}, queue: {maxWait: 10s}',
    );
    const { socket } = await openWithWindow(gate.url, 1000);
    socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, head('GET', '/1')));
    await eventually(gate.requests, ({ length }) => length === 1);
    socket.write(frame(FRAME.headers, FLAG.endHeaders, 3, head('POST', '/3')));
    socket.write(frame(FRAME.data, 0, 3, Buffer.alloc(4000)));
    await eventually(
      () => gate.view().limits[0]?.queued,
      (queued) => queued === 1,
    );
    socket.write(reset(3, code));
    const lines = await eventually(gate.requests, ({ length }) => length === 2);
    expect(lines[1]).toMatchObject({ path: '/3', status: 0, outcome: 'client_gone', attempts: 0 });
    expect(gate.view().limits[0]?.queued).toBe(0);
    expect(await gate.metric(inFlight)).toBe(0);
  });

  test('warns that a write may have taken effect which was at the upstream', async () => {
    const { gate, held } = await start();
    const { socket } = await openWithWindow(gate.url, 10);
    socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head('POST', '/held')));
    socket.write(frame(FRAME.data, FLAG.endStream, 1, Buffer.alloc(10)));
    await eventually(held, (count) => count === 1);
    socket.write(reset(1, code));
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ level: 'warn', path: '/held', status: 0, outcome: 'client_gone', unknown: true }]);
    expect(await gate.metric(inFlight)).toBe(0);
  });

  test('after the whole response changes nothing', async () => {
    const { gate } = await start(', retry: {replayLimit: 1KiB}');
    const { socket, frames } = await openWithWindow(gate.url, 1000);
    socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head('POST', '/')));
    socket.write(frame(FRAME.data, 0, 1, Buffer.alloc(4000)));
    await eventually(
      () => frames,
      (seen) => seen.some(({ type, flags }) => type === FRAME.data && (flags & FLAG.endStream) !== 0),
    );
    socket.write(reset(1, code));
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ level: 'info', path: '/', status: 200, outcome: 'forwarded' }]);
    expect(lines[0]).not.toHaveProperty('cut');
  });
});
