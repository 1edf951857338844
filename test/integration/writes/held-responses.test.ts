/** A response reaches its client whole although what is known of its key is read from a store while it arrives. */
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
const identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
afterAll(() => certificates.remove());

/** With several urls, a database has to know that a rejected write was nowhere, before the rejection is forwarded. */
async function start(url: string, more = ''): Promise<Tidegate> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return startTidegate(
    `state: {store: sqlite, file: ${join(folder, 'state.db')}}
upstreams: {api: {urls: ["${url}", "${url.replace('localhost', '127.0.0.1')}"], retry: {attempts: 1}, idempotency: {ttl: 24h}${more}}}`,
  );
}

async function startUpstream(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

const post = (gate: Tidegate, key: string): ReturnType<typeof send> =>
  send(gate.url, '/charges', { method: 'POST', headers: ['Idempotency-Key', key], body: 'amount=1' });

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

describe.each([401, 404, 429, 503])('a %i to a write with a key', (status) => {
  test.each([0, 25, 20_000, 500_000])('of %i bytes that arrive with the head', async (length) => {
    const body = 'x'.repeat(length);
    const gate = await start(
      await startUpstream((response) => response.writeHead(status, { 'content-length': String(length) }).end(body)),
    );
    for (const key of ['one', 'two', 'three']) {
      const answer = await post(gate, key);
      expect([answer.status, answer.body.toString()]).toEqual([status, body]);
    }
  });

  test('over HTTP/2', async () => {
    const { url } = await startHttp2(identity, (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': status });
      stream.end('x'.repeat(40_000));
    });
    const gate = await start(
      url.replace('127.0.0.1', 'localhost'),
      `, http2: true, tls: {ca: ${certificates.path('ca.crt')}}`,
    );
    for (const key of ['one', 'two']) {
      const answer = await post(gate, key);
      expect([answer.status, answer.body.length]).toEqual([status, 40_000]);
    }
  });

  test('that is cut', async () => {
    const gate = await start(
      await startUpstream((response) => {
        response.writeHead(status, { 'content-length': '100' }).write('x');
        setImmediate(() => response.destroy());
      }),
    );
    await expect(post(gate, 'one')).rejects.toThrow(/aborted|hang up/);
  });

  test('whose chunks arrive one after another', async () => {
    const gate = await start(
      await startUpstream((response) => {
        response.writeHead(status).write('first ');
        void pause(20).then(() => response.write('second '));
        void pause(40).then(() => response.end('third'));
      }),
    );
    const answer = await post(gate, 'one');
    expect([answer.status, answer.body.toString()]).toEqual([status, 'first second third']);
  });
});
