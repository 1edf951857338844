/** Requests that an upstream refuses over HTTP/2, while others on its connections are served, block only what they have in common. */
import type { TLSSocket } from 'node:tls';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FRAME, frame } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { answerOk, startFrames } from '../../support/upstreams/http2-upstream.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const eight = Array.from({ length: 8 }, (_, i) => i);
const LARGE = ['X-A', 'a'.repeat(5000)];

/** @param url whose connections are refused, or whose requests are, for the client `bad` alone */
async function start(url: string) {
  const tls = url.startsWith('https:') ? `, http2: true, tls: {ca: ${certificates.path('ca.crt')}}` : '';
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key"]}
upstreams: {api: {url: "${url}"${tls}, retry: {attempts: 1}, queue: {maxWait: 10ms}}}
`);
  const ask = async (key: string, path: string, headers: readonly string[] = []): Promise<number> => {
    const address = key === 'bad' ? '203.0.113.66' : '198.51.100.1';
    return (await send(gate.url, path, { headers: ['X-Api-Key', key, 'X-Forwarded-For', address, ...headers] })).status;
  };
  const blocks = (part: string): Promise<number> =>
    gate.metric(`tidegate_ratelimit_blocks{upstream="api",cause="errors",part="${part}"}`);
  return { gate, ask, blocks };
}

test.each<[string, readonly string[], (socket: TLSSocket, stream: number) => void]>([
  ['with REFUSED_STREAM', [], (socket, stream) => socket.write(frame(FRAME.reset, 0, stream, encodeUint32s(7)))],
  [
    'with a GOAWAY that names none as read, over their heads',
    LARGE,
    (socket) => socket.end(frame(FRAME.goAway, 0, 0, encodeUint32s(0, 9))),
  ],
])('requests of one client that are refused unread %s block that client', async (_, headers, refuse) => {
  let isBad = true;
  const upstream = await startFrames(identity, (socket, stream) => {
    if (isBad) refuse(socket, stream);
    else answerOk(socket, stream);
  });
  const { ask, blocks, gate } = await start(upstream.url);
  for (const i of eight) expect(await ask('bad', `/${i}`, headers)).toBe(502);
  expect([await blocks('client'), await blocks('upstream')]).toEqual([1, 0]);
  isBad = false;
  for (const i of eight) expect(await ask('good', `/${i}`)).toBe(200);
  expect(JSON.stringify(gate.log())).not.toContain('unreachable');
});

test('requests of one client that need a connection of their own, which is refused, block that client', async () => {
  const upstream = await startFrames(identity, answerOk, undefined, (socket, connection) => {
    if (connection > 1) socket.destroy();
  });
  const { ask, blocks } = await start(upstream.url);
  expect(await ask('good', '/')).toBe(200);
  for (const i of eight) expect(await ask('bad', `/${i}`, LARGE)).toBe(502);
  expect([await blocks('client'), await blocks('upstream')]).toEqual([1, 0]);
  for (const i of eight) expect(await ask('good', `/${i}`)).toBe(200);
});

test('requests whose connections are refused while another one is open block only what they have in common', async () => {
  const { url, server } = await listen((_, response) => void response.writeHead(200).write('x'));
  const { ask, blocks, gate } = await start(url);
  const held = await fetch(`${gate.url}/held`, { headers: { 'X-Api-Key': 'good' } });
  server.close();
  onTestFinished(() => void held.body?.cancel());
  for (const i of eight) expect(await ask('bad', `/${i}`)).toBe(502);
  expect([await blocks('client'), await blocks('upstream')]).toEqual([1, 0]);
});

test('requests that get no connection block the upstream if none is open', async () => {
  const upstream = await startFrames(identity, answerOk, undefined, (socket) => void socket.destroy());
  const { ask, blocks } = await start(upstream.url);
  for (const _ of eight) await ask('bad', '/x', LARGE);
  expect([await blocks('client_path'), await blocks('upstream')]).toEqual([0, 1]);
});
