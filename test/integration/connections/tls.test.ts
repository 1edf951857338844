import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { TlsOptions, TLSSocket } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { DnsLookup } from '../../../src/http/upstream/dns-resolver.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const { path, ...certificates } = makeCertificates();

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  certificates.issue('named', '-addext', 'subjectAltName=DNS:pay.example');
  certificates.issue('both', '-addext', 'subjectAltName=DNS:one.example,DNS:two.example');
  certificates.issue('client');
  certificates.issueExpired('expired', 'IP:127.0.0.1');
  certificates.selfSign('self', '-addext', 'subjectAltName=IP:127.0.0.1');
});
afterAll(() => certificates.remove());

/** An https upstream that records the server names requested, and counts its connections. */
async function startTls(name: string, options: TlsOptions = {}) {
  let hits = 0;
  let connections = 0;
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
  server.on('secureConnection', () => (connections += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits: () => hits,
    connections: () => connections,
  };
}

const yaml = (url: string, tls: string) => `upstreams: {api: {url: "${url}", tls: {${tls}}, retry: {attempts: 1}}}`;

test('refuses a self-signed upstream with 502, and sends it no request', async () => {
  const upstream = await startTls('self');
  const gate = await startTidegate(yaml(upstream.url, ''));
  const answer = await send(gate.url, '/', { method: 'POST', headers: ['Authorization', 'Bearer secret'], body: 'x' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({
    reason: 'connect',
    detail: 'The certificate of the upstream is self-signed and not trusted by this proxy. Nothing was sent.',
  });
  expect(answer.header('proxy-status')).toContain('error=tls_certificate_error');
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(gate.requests()).toMatchObject([{ cause: 'DEPTH_ZERO_SELF_SIGNED_CERT', outcome: 'upstream_error' }]);
  expect(upstream.hits()).toBe(0);
});

test('accepts a certificate whose CA is trusted, given as a file or as text', async () => {
  const upstream = await startTls('server');
  const asFile = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(asFile.url, '/')).status).toBe(200);
  const text = JSON.stringify(readFileSync(path('ca.crt'), 'utf8'));
  const asText = await startTidegate(yaml(upstream.url, `ca: ${text}`));
  expect((await send(asText.url, '/')).status).toBe(200);
});

test('accepts a self-signed certificate that is trusted itself, or where verification is off', async () => {
  const upstream = await startTls('self');
  for (const tls of [`ca: ${path('self.crt')}`, 'insecure: true']) {
    const gate = await startTidegate(yaml(upstream.url, tls));
    expect((await send(gate.url, '/')).status).toBe(200);
  }
});

test('refuses a certificate for another name, unless that name is configured', async () => {
  const upstream = await startTls('named');
  const byAddress = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(byAddress.url, '/')).status).toBe(502);
  const byName = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}, serverName: pay.example`));
  const answer = await send(byName.url, '/');
  expect(answer.status).toBe(200);
  expect(answer.json()).toMatchObject({ asked: 'pay.example' });
});

test('refuses an expired certificate, and one of an untrusted CA', async () => {
  const expired = await startTls('expired');
  const gate = await startTidegate(yaml(expired.url, `ca: ${path('ca.crt')}`));
  const answer = await send(gate.url, '/', { method: 'POST', body: 'x' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({ detail: 'The certificate of the upstream has expired. Nothing was sent.' });
  expect(expired.hits()).toBe(0);

  const untrusted = await startTls('server');
  const gateToUntrusted = await startTidegate(yaml(untrusted.url, ''));
  expect((await send(gateToUntrusted.url, '/')).json()).toMatchObject({
    detail: 'The certificate of the upstream is from an authority that this proxy does not trust. Nothing was sent.',
  });
  expect(untrusted.hits()).toBe(0);
});

test('retries any request that a certificate error kept from being sent', async () => {
  let certificate = 'expired';
  const upstream = await startTls('server', {
    SNICallback: (_name, done) =>
      done(
        null,
        createSecureContext({
          key: certificates.read(`${certificate}.key`),
          cert: certificates.read(`${certificate}.crt`),
        }),
      ),
  });
  const gate =
    await startTidegate(`upstreams: {api: {url: "${upstream.url.replace('127.0.0.1', 'localhost')}", tls: {ca: ${path('ca.crt')}},
  retry: {backOff: {strategy: fixed, baseInterval: 100ms}}}}`);
  const answer = send(gate.url, '/', { method: 'POST', body: 'pay' });
  await eventually(
    () => gate.metric('tidegate_retries_total{upstream="api",reason="connect"}'),
    (count) => count === 1,
  );
  certificate = 'server';
  expect((await answer).status).toBe(200);
  expect(upstream.hits()).toBe(1);
});

describe('with several endpoints, or with preserveHost', () => {
  const lookup: DnsLookup = (_, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  const named = (name: string, { url }: { url: string }) => url.replace('127.0.0.1', name);

  test('verifies each endpoint against its own name', async () => {
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

  test('does not let a client’s Host choose the verified name or break connections', async () => {
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
    // Its certificate is for pay.example, not for the requested address.
    expect((await send(byAddress.url, '/', { headers: ['Host', 'pay.example'] })).status).toBe(502);
  });
});

test('verifies the configured name, whatever the URL says', async () => {
  const upstream = await startTls('named');
  const url = upstream.url.replace('127.0.0.1', 'localhost');
  const gate = await startTidegate(yaml(url, `ca: ${path('ca.crt')}, serverName: pay.example`));
  const answer = await send(gate.url, '/');
  expect(answer.json()).toMatchObject({ asked: 'pay.example' });
});

test('reports disabled verification in the log at startup and as a metric', async () => {
  const upstream = await startTls('self');
  const gate = await startTidegate(`upstreams:
  open: {url: "${upstream.url}", tls: {insecure: true}}
  sound: {url: "${upstream.url}"}
routes: [{path: /open, upstream: open}, {path: /, upstream: sound}]`);
  expect((await send(gate.url, '/open')).status).toBe(200);
  expect((await send(gate.url, '/')).status).toBe(502);
  expect(await gate.metric('tidegate_upstream_tls_insecure{upstream="open"}')).toBe(1);
  const exposition = await (await fetch(`${gate.adminUrl}/metrics`)).text();
  expect(exposition).toContain('tidegate_upstream_tls_insecure{upstream="sound"} 0');

  const folder = dirname(path('ca.crt'));
  const file = join(folder, 'insecure.yaml');
  writeFileSync(
    file,
    `listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams: {api: {url: "${upstream.url}", tls: {insecure: true}}}`,
  );
  const running = startProcess(['--config', file]);
  const lines = await eventually(running.log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const warning = lines.find(({ level }) => level === 'warn');
  expect(warning?.['msg']).toContain('upstreams.api.tls.insecure: the certificate is not verified');
});

test('presents the client certificate where the upstream asks for one', async () => {
  const upstream = await startTls('server', { ca: readFileSync(path('ca.crt'), 'utf8'), requestCert: true });
  const nameless = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(nameless.url, '/')).status).toBe(502);
  const known = await startTidegate(
    yaml(upstream.url, `ca: ${path('ca.crt')}, cert: ${path('client.crt')}, key: ${path('client.key')}`),
  );
  const answer = await send(known.url, '/');
  expect(answer.json()).toMatchObject({ peer: 'client' });
});

test('refuses an upstream that supports only TLS versions below the minimum', async () => {
  const upstream = await startTls('server', { maxVersion: 'TLSv1.2' });
  const strict = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}, minVersion: TLSv1.3`));
  expect((await send(strict.url, '/')).status).toBe(502);
  const lenient = await startTidegate(yaml(upstream.url, `ca: ${path('ca.crt')}`));
  expect((await send(lenient.url, '/')).json()).toMatchObject({ version: 'TLSv1.2' });

  // With ciphers that OpenSSL disables by default, so that the version is what is rejected.
  const ancient = await startTls('server', {
    minVersion: 'TLSv1.1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  const gate = await startTidegate(yaml(ancient.url, `ca: ${path('ca.crt')}`));
  const answer = await send(gate.url, '/', { method: 'POST', body: 'x' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({
    detail: 'The TLS handshake with the upstream failed. Nothing was sent.',
  });
  expect(answer.header('proxy-status')).toMatch(/error=tls_(?:alert_received|protocol_error)/);
});

test('says that an https url probably needs http if the upstream answers without TLS', async () => {
  const plain = await startUpstream();
  const gate = await startTidegate(yaml(plain.url.replace('http:', 'https:'), `ca: ${path('ca.crt')}`));
  const answer = await send(gate.url, '/');
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({
    detail:
      'The upstream does not speak TLS at this port: its url probably needs http in place of https. Nothing was sent.',
  });
  expect(answer.header('proxy-status')).toContain('error=tls_protocol_error');
});
