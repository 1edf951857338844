/** Over HTTP/2 to the upstream, clients share the connections without other requests fairly. */
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

/** Connections without other requests that there may be. */
const UNSHARED = 16;
/** How long the upstream takes for a request of the busy client. */
const SLOW = 600;

async function start(more = '') {
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    const answer = (): void => {
      if (!stream.destroyed) stream.respond({ ':status': 204 }, { endStream: true });
    };
    stream.resume().once('end', () => {
      if (head[':path'] !== '/held') setTimeout(answer, head[':path'] === '/slow' ? SLOW : 0);
    });
  });
  const gate = await startTidegate(`
clients: {key: [header:X-Client]}
${more}
upstreams: {api: {url: "${upstream.url}", http2: true, connections: 1, tls: {ca: ${certificates.path('ca.crt')}}}}`);
  expect((await post(gate, 'calm', '/', 1)).status).toBe(204);
  return { upstream, gate };
}

const post = (gate: Tidegate, client: string, path: string, bytes: number, signal = new AbortController().signal) =>
  send(gate.url, path, { method: 'POST', headers: ['X-Client', client], body: Buffer.alloc(bytes), signal });

test.each([
  { busy: 'uploads', kept: 0, bytes: 100_000, calm: 100_000, more: '' },
  // The memory for kept bodies is full, so that all others are streamed.
  { busy: 'writes', kept: 65_536, bytes: 10, calm: 1, more: 'limits: {replayMemory: 64KiB}' },
])('a client with many slow $busy delays those of others by one of them at most', async (options) => {
  const { gate, upstream } = await start(options.more);
  const before = upstream.heads.length;
  const leaving = new AbortController();
  const kept = post(gate, 'first', '/held', options.kept, leaving.signal).catch(() => undefined);
  await eventually(
    () => upstream.heads.length,
    (count) => count > before,
  );
  const busy = Array.from({ length: 6 * UNSHARED }, () => post(gate, 'busy', '/slow', options.bytes));
  await eventually(
    () => upstream.heads.length,
    (count) => count > before + UNSHARED,
  );
  for (let i = 0; i < 4; i += 1) {
    const since = performance.now();
    expect((await post(gate, 'calm', '/', options.calm)).status).toBe(204);
    expect(performance.now() - since).toBeLessThan(2 * SLOW);
  }
  expect(new Set((await Promise.all(busy)).map(({ status }) => status))).toEqual(new Set([204]));
  leaving.abort();
  await kept;
});
