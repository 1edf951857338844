import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Lookup } from '../../src/proxy/name.ts';
import { send } from '../support/send.ts';
import { startTidegate } from '../support/tidegate.ts';

let folder: string;
const path = (name: string) => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidegate-tls-'));
  const subject = (name: string) => ['-subj', `/CN=${name}`];
  const key = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    path(`${name}.key`),
  ];
  const sign = (name: string, ...more: string[]) =>
    openssl('req', '-x509', ...key(name), '-out', path(`${name}.crt`), '-days', '2', ...subject(name), ...more);
  sign('ca');
  const byCa = ['-CA', path('ca.crt'), '-CAkey', path('ca.key')];
  const leaf = ['-addext', 'basicConstraints=critical,CA:FALSE'];
  sign('server', ...byCa, ...leaf, '-addext', 'subjectAltName=IP:127.0.0.1');
  sign('named', ...byCa, ...leaf, '-addext', 'subjectAltName=DNS:pay.example');
  sign('both', ...byCa, ...leaf, '-addext', 'subjectAltName=DNS:one.example,DNS:two.example');
  sign('client', ...byCa, ...leaf);
  sign('self', ...leaf, '-addext', 'subjectAltName=IP:127.0.0.1');
});
afterAll(() => rmSync(folder, { recursive: true }));

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}

/** An https upstream that tells whom it saw. */
async function startTls(name: string, options: { ca?: string; requestCert?: boolean; maxVersion?: 'TLSv1.2' } = {}) {
  let hits = 0;
  const server = createServer(
    {
      key: readFileSync(path(`${name}.key`)),
      cert: readFileSync(path(`${name}.crt`)),
      rejectUnauthorized: true,
      ...options,
    },
    (request, response) => {
      hits += 1;
      const socket = request.socket as TLSSocket;
      const peer = socket.getPeerCertificate().subject?.CN;
      response.end(
        JSON.stringify({ peer, asked: (socket as { servername?: string }).servername, version: socket.getProtocol() }),
      );
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  let connections = 0;
  server.on('secureConnection', () => {
    connections += 1;
  });
  const { port } = server.address() as AddressInfo;
  return { url: `https://127.0.0.1:${port}`, hits: () => hits, connections: () => connections };
}

const yaml = (url: string, tls: string) => `upstreams: {api: {url: "${url}", tls: {${tls}}, retry: {attempts: 1}}}`;

test('an upstream that vouches for itself is refused: 502, and it sees no request', async () => {
  const upstream = await startTls('self');
  const gate = await startTidegate(yaml(upstream.url, ''));
  const answer = await send(gate.url, '/', { method: 'POST', headers: ['Authorization', 'Bearer secret'], body: 'x' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ reason: 'connect' });
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(upstream.hits()).toBe(0);
});

test('one whose authority is trusted is accepted, as a file or as text', async () => {
  const upstream = await startTls('server');
  const asFile = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(asFile.url, '/')).status).toBe(200);
  const text = JSON.stringify(readFileSync(path('ca.crt'), 'utf8'));
  const asText = await startTidegate(yaml(upstream.url, `ca: ${text}`));
  expect((await send(asText.url, '/')).status).toBe(200);
});

test('one that vouches for itself is accepted where it is trusted by name, or where nobody looks', async () => {
  const upstream = await startTls('self');
  for (const tls of [`ca: ${path('self.crt')}`, 'insecure: true']) {
    const gate = await startTidegate(yaml(upstream.url, tls));
    expect((await send(gate.url, '/')).status).toBe(200);
  }
});

test('a certificate for another name is refused, unless that name is asked for', async () => {
  const upstream = await startTls('named');
  const byAddress = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(byAddress.url, '/')).status).toBe(502);
  const byName = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}, serverName: pay.example`));
  const answer = await send(byName.url, '/');
  expect(answer.status).toBe(200);
  expect(answer.json()).toMatchObject({ asked: 'pay.example' });
});

describe('with several endpoints, or a Host that is preserved', () => {
  const lookup: Lookup = (_, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  const named = (name: string, { url }: { url: string }) => url.replace('127.0.0.1', name);

  test('each endpoint is asked for by its own name, and has to prove it', async () => {
    const [one, two, other] = [await startTls('both'), await startTls('both'), await startTls('named')];
    const urls = [named('one.example', one), named('two.example', two), named('one.example', other)];
    const gate = await startTidegate(
      `upstreams: {api: {urls: [${urls.join(', ')}], tls: {ca: ${path('ca.crt')}}, preserveHost: true}}`,
      { lookup },
    );
    const asked = [];
    for (let i = 0; i < 4; i += 1) {
      const answer = await send(gate.url, '/', { headers: ['Host', `client-${i}.example`] });
      asked.push(answer.json()['asked']);
    }
    expect(new Set(asked)).toEqual(new Set(['one.example', 'two.example']));
    expect(other.hits()).toBe(0);
  });

  test('a client does not choose by its Host whom the upstream has to be, nor break its connections', async () => {
    const upstream = await startTls('named');
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", tls: {ca: ${path('ca.crt')}, serverName: pay.example}, preserveHost: true, retry: {attempts: 1}}}`,
    );
    for (const host of ['pay.example', 'evil.example', 'proxy.local:8080']) {
      const answer = await send(gate.url, '/', { headers: ['Host', host] });
      expect([answer.status, answer.json()['asked']]).toEqual([200, 'pay.example']);
    }
    expect(upstream.connections()).toBe(1);
    const byAddress = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", tls: {ca: ${path('ca.crt')}}, preserveHost: true, retry: {attempts: 1}}}`,
    );
    // Its certificate is for pay.example, and not for the address that it was told.
    expect((await send(byAddress.url, '/', { headers: ['Host', 'pay.example'] })).status).toBe(502);
  });
});

test('where the upstream wants to know us, our certificate is shown', async () => {
  const upstream = await startTls('server', { ca: readFileSync(path('ca.crt'), 'utf8'), requestCert: true });
  const nameless = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(nameless.url, '/')).status).toBe(502);
  const known = await startTidegate(
    yaml(upstream.url, `ca: ${path('ca.crt')}, cert: ${path('client.crt')}, key: ${path('client.key')}`),
  );
  const answer = await send(known.url, '/');
  expect(answer.json()).toMatchObject({ peer: 'client' });
});

test('an upstream that speaks only an older TLS than we accept is refused', async () => {
  const upstream = await startTls('server', { maxVersion: 'TLSv1.2' });
  const strict = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}, minVersion: TLSv1.3`));
  expect((await send(strict.url, '/')).status).toBe(502);
  const lenient = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(lenient.url, '/')).json()).toMatchObject({ version: 'TLSv1.2' });
});
