/** A stream over HTTP/2 that is given up while bytes of it wait for the other side to take them: it is reset, and that is all. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../support/certificates.ts';
import { FLAG, FRAME, frame, literals, openFrames, words } from '../support/http2.ts';
import { startHttp2 } from '../support/http2-upstream.ts';
import type { LogLine, Probed } from '../support/probed.ts';
import { startProbed } from '../support/probed.ts';
import { send, sendAndLeave } from '../support/send.ts';
import { eventually } from '../support/tidegate.ts';

const certificates = makeCertificates();
let identity: { key: string; cert: string };
beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
});
afterAll(() => certificates.remove());

/** In a process of its own: one that loops in native code would take this one with it. */
async function start(yaml: string): Promise<Probed & { readonly lines: readonly LogLine[] }> {
  const lines: LogLine[] = [];
  const gate = await startProbed(yaml, (line) => lines.push(line));
  onTestFinished(() => gate.stop('SIGKILL'));
  return Object.assign(gate, { lines });
}

async function expectAlive(gate: Probed): Promise<void> {
  const answer = await fetch(`${gate.adminUrl}/livez`, { signal: AbortSignal.timeout(5000) });
  expect(answer.status).toBe(200);
}

// One that is kept for a retry is handed to the connection at once; one that is streamed is, too, when its client has sent it.
test.each([60_000, 100_000])('an upload of %i bytes that the upstream takes no more of', async (length) => {
  const resets: number[] = [];
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      if (head[':method'] === 'GET') return stream.respond({ ':status': 204 }, { endStream: true });
      stream.on('close', () => resets.push(stream.rstCode));
    },
    { settings: { initialWindowSize: 1000 } },
  );
  const ca = certificates.path('ca.crt');
  const gate = await start(`upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${ca}}}}`);
  expect((await send(gate.url, '/')).status).toBe(204); // so that the window is known
  await sendAndLeave(gate.url, '/', { method: 'POST', body: 'x'.repeat(length) }, async () => {
    if (upstream.heads.length === 1) return false;
    await sleep(200); // what can be is handed to the connection
    return true;
  });
  upstream.widen(1_000_000);
  await sleep(200);
  await expectAlive(gate);
  await eventually(
    () => resets,
    ({ length: streams }) => streams === 1,
    2000,
  );
  expect(resets).toEqual([8]); // CANCEL
  expect((await send(gate.url, '/')).status).toBe(204);
  expect(upstream.sessions()).toBe(1);
});

test('an answer that the client takes nothing of, before the end of its upload', async () => {
  const { path } = certificates;
  const gate =
    await start(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
limits: {bodyIdle: 1500ms}
upstreams: {api: {url: "http://127.0.0.1:9"}}`);
  const { socket, frames } = await openFrames(gate.url, certificates.read('ca.crt'));
  const initialWindow = Buffer.from([0, 4, 0, 0, 0, 0]);
  socket.write(frame(FRAME.settings, 0, 0, initialWindow));
  const head = literals({ ':method': 'POST', ':scheme': 'https', ':path': '//x', ':authority': '127.0.0.1' });
  socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, head));
  await eventually(
    () => gate.lines.filter(({ msg }) => msg === 'request'),
    ({ length }) => length === 1,
    10_000,
  );
  socket.write(frame(FRAME.windowUpdate, 0, 1, words(100_000)));
  await sleep(200);
  await expectAlive(gate);
  expect(frames.some(({ type, stream }) => type === FRAME.reset && stream === 1)).toBe(true);
});
