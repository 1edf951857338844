/** Aborting an HTTP/2 stream while its data waits for flow control resets the stream and nothing else. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { FLAG, FRAME, frame, literals, openFrames, encodeUint32s } from '../../support/clients/http2-client.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';
import type { LogLine, ProbedProcess } from '../../support/proxy/probed-process.ts';
import { startProbedProcess } from '../../support/proxy/probed-process.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
let identity: { key: string; cert: string };
beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
});
afterAll(() => certificates.remove());

/** Starts the proxy in its own process: an endless loop in native code would block the test too. */
async function start(yaml: string): Promise<ProbedProcess & { readonly lines: readonly LogLine[] }> {
  const lines: LogLine[] = [];
  const gate = await startProbedProcess(yaml, (line) => lines.push(line));
  onTestFinished(() => gate.stop('SIGKILL'));
  return Object.assign(gate, { lines });
}

async function expectAlive(gate: ProbedProcess): Promise<void> {
  const answer = await fetch(`${gate.adminUrl}/livez`, { signal: AbortSignal.timeout(5000) });
  expect(answer.status).toBe(200);
}

// 60 000 bytes fit the replay buffer, 100 000 are streamed; both are passed to the connection as soon as they arrive.
test.each([60_000, 100_000])(
  'resets the stream when the client aborts an upload of %i bytes that the upstream stopped reading',
  async (length) => {
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
    expect((await send(gate.url, '/')).status).toBe(204); // so that the proxy knows the initial window
    await sendAndLeave(gate.url, '/', { method: 'POST', body: 'x'.repeat(length) }, async () => {
      if (upstream.heads.length === 1) return false;
      await sleep(200); // the proxy passes all data it may to the connection
      return true;
    });
    upstream.widen(1_000_000);
    await sleep(200);
    await expectAlive(gate);
    await eventually(
      () => resets,
      ({ length: streams }) => streams === 1,
    );
    expect(resets).toEqual([8]); // CANCEL
    expect((await send(gate.url, '/')).status).toBe(204);
    expect(upstream.sessions()).toBe(length > 65_536 ? 2 : 1); // a streamed upload shares no connection
  },
);

test('resets the stream when the client does not read the response to its unfinished upload', async () => {
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
  );
  socket.write(frame(FRAME.windowUpdate, 0, 1, encodeUint32s(100_000)));
  await sleep(200);
  await expectAlive(gate);
  expect(frames.some(({ type, stream }) => type === FRAME.reset && stream === 1)).toBe(true);
});
