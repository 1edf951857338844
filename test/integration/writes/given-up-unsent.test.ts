/** Attempts that time out before they have a connection have no effect later. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sha256 } from '../../support/upstreams/http-upstream.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

test('uses no connection for requests that time out in the queue, and does not send them', async () => {
  const held = new Set<ServerResponse>();
  const origin = await startRecordingUpstream(({ target }, response) => {
    if (target === '/slow') held.add(response);
    else response.end();
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${origin.url}", connections: 2, retry: {attempts: 1}}}
routes: [{path: /slow, upstream: api}, {path: /, upstream: api, perTryTimeout: 100ms, timeout: 200ms}]
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
    perTryTimeout: 1s
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

/** Records the digests of the bodies that arrived whole. */
async function startTlsUpstream(): Promise<{ readonly url: string; readonly received: readonly string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-tls-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', ...made, '-subj', '/CN=upstream'], { stdio: 'pipe' });
  const received: string[] = [];
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      received.push(sha256(Buffer.concat(chunks)));
      response.end('{}');
    });
  });
  rmSync(folder, { recursive: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}
