import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { Agent, request as requestHttps } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect as connectTcp } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import { headerOf } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
let ca: string;

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  certificates.issue('renewed', '-addext', 'subjectAltName=IP:127.0.0.1');
  const [from, to] = [certificates.path('server.key'), certificates.path('locked.key')];
  execFileSync('openssl', ['ec', '-in', from, '-out', to, '-aes256', '-passout', 'pass:open'], { stdio: 'pipe' });
  ca = certificates.read('ca.crt');
});
afterAll(() => certificates.remove());

function start(url: string, tls = '', more = ''): Promise<Tidegate> {
  const { path } = certificates;
  const key = tls.includes('key:') ? '' : `, key: ${path('server.key')}`;
  return startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}${key}${tls}}}
upstreams: {api: {url: "${url}"}}
${more}`);
}

/** Resolves with the head; discards the body. */
async function get(gate: Tidegate, options: ConnectionOptions & { agent?: Agent } = {}): Promise<IncomingMessage> {
  const { hostname, port } = new URL(gate.url);
  const request = requestHttps({ host: hostname, port, ca, ...options }).end();
  request.on('error', () => undefined); // reported below, where the response is awaited
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return response;
}

test('serves clients over TLS, and reports it to the upstream', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  expect(gate.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const agent = new Agent({ keepAlive: true, ca });
  onTestFinished(() => agent.destroy());
  for (let i = 0; i < 2; i += 1) {
    const response = await get(gate, { agent });
    expect(response).toMatchObject({ statusCode: 200, httpVersion: '1.1' });
    expect(response.headers['tidegate-attempts']).toBe('1');
    await once(response, 'end');
  }
  expect(headerOf(upstream.hits[0]?.headers ?? [], 'x-forwarded-proto')).toBe('https');
});

test('opens an encrypted key with its passphrase', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url, `, key: ${certificates.path('locked.key')}, passphrase: open`);
  expect((await get(gate)).statusCode).toBe(200);
});

test('rejects a TLS version below the configured minimum, and always 1.1', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const lenient = await start(upstream.url);
  const strict = await start(upstream.url, ', minVersion: TLSv1.3');
  expect((await get(lenient, { maxVersion: 'TLSv1.2' })).statusCode).toBe(200);
  await expect(get(strict, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/alert/);
  // With ciphers that OpenSSL disables by default, so that the version is what is rejected.
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  await expect(get(lenient, old)).rejects.toThrow(/alert/);
});

test('offers HTTP/2 only where configured', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  const { hostname, port } = new URL(gate.url);
  const socket = connectTls({ host: hostname, port: Number(port), ca, ALPNProtocols: ['h2', 'http/1.1'] });
  socket.on('error', () => undefined); // a reset at its end does not matter here
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'secureConnect');
  expect(socket.alpnProtocol).toBe('http/1.1');
});

test('presents a renewed certificate to new connections, and ignores one that is unusable', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const names = ['cert', 'key'].map((name) => certificates.path(`live.${name}`));
  const [cert = '', key = ''] = names;
  const install = (name: string): void => {
    copyFileSync(certificates.path(`${name}.key`), key);
    copyFileSync(certificates.path(`${name}.crt`), cert);
  };
  install('server');
  const gate = await startTidegate(
    `listen: {address: 127.0.0.1:0, tls: {cert: ${cert}, key: ${key}}}\nupstreams: {api: {url: "${upstream.url}"}}`,
  );
  const shown = async (): Promise<string> => {
    const response = await get(gate, { agent: new Agent({ ca }) });
    return String((response.socket as TLSSocket).getPeerCertificate().subject?.CN);
  };
  expect(await shown()).toBe('server');
  install('renewed');
  await eventually(shown, (name) => name === 'renewed');
  expect(gate.log()).toContainEqual(
    expect.objectContaining({
      level: 'info',
      msg: 'certificate reloaded: its files have changed',
    }),
  );
  writeFileSync(cert, '-----BEGIN CERTIFICATE-----');
  await eventually(
    () => gate.log(),
    (lines) =>
      lines.some(({ level, msg }) => level === 'warn' && String(msg).includes('the previous one stays in use')),
  );
  expect(await shown()).toBe('renewed');
});

test('closes a connection without TLS, and one that never completes its handshake', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url, '', 'limits: {headers: 200ms}');
  expect(await sendRaw(gate.url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).not.toContain('HTTP/1.1');
  const { hostname, port } = new URL(gate.url);
  const silent = connectTcp({ host: hostname, port: Number(port) });
  silent.on('error', () => undefined);
  await once(silent, 'close');
  expect((await get(gate)).statusCode).toBe(200);
});

test('does not wait for unfinished handshakes when it closes', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url, '', 'limits: {headers: 60s}\ndrain: {delay: 0, timeout: 60s}');
  const silent = await openRaw(gate.url);
  const since = performance.now();
  await gate.close();
  await silent.ended();
  expect(performance.now() - since).toBeLessThan(30_000); // of the 60 s for its first bytes
});

test('completes what is in flight in a drain, and closes its connection', async () => {
  let held: (() => void) | undefined;
  const upstream = await listen((_request, response) => {
    held = () => response.end('finished');
  });
  const gate = await start(upstream.url, '', 'drain: {delay: 0, timeout: 5s}');
  const answer = get(gate, { agent: new Agent({ keepAlive: true, ca }) });
  await eventually(
    () => held,
    (release) => release !== undefined,
  );
  const drained = gate.drain();
  await pause(50);
  held?.();
  expect((await answer).headers.connection).toBe('close');
  await drained;
});
