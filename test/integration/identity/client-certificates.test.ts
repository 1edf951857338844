/** `clients.auth.certificate`: clients that prove their names by a TLS certificate. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type ConnectionOptions } from 'node:tls';
import { connect as connectHttp2 } from 'node:http2';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { sendHttp2 } from '../../support/clients/http2-client.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';

interface Setup {
  readonly auth?: string;
  readonly http2?: boolean;
}

function authority(): Certificates {
  const certificates = makeCertificates();
  atEnd(() => certificates.remove());
  return certificates;
}

async function start({ auth = 'certificate: {}', http2 = false }: Setup = {}) {
  const certificates = authority();
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const { path } = certificates;
  const api = await startRecordingUpstream();
  const tls = `{cert: ${path('server.crt')}, key: ${path('server.key')}, clientCa: ${path('ca.crt')}}`;
  const gate = await startTidegate(
    `listen: {address: 127.0.0.1:0, tls: ${tls}, http2: ${http2}}\nupstreams: {api: {url: "${api.url}"}}\nclients: {auth: {${auth}}}`,
  );
  return { certificates, api, gate };
}

function identityOf({ read }: Certificates, name: string): ConnectionOptions {
  return { cert: read(`${name}.crt`), key: read(`${name}.key`) };
}

/** Sends a request over a connection of its own. Returns the response as text, and a session that can be resumed. */
async function request(
  url: string,
  options: ConnectionOptions,
  headers = '',
): Promise<{ readonly text: string; readonly session: Buffer | undefined; readonly isResumed: boolean }> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ALPNProtocols: ['http/1.1'], ...options });
  atEnd(() => void socket.destroy());
  let session: Buffer | undefined;
  let text = '';
  socket.on('session', (ticket: Buffer) => {
    session = ticket;
  });
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
  });
  await once(socket, 'secureConnect');
  const isResumed = socket.isSessionReused();
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`);
  await once(socket, 'close');
  return { text, session, isResumed };
}

const statusOf = ({ text }: { readonly text: string }): number => Number(text.slice(9, 12));

describe('a client certificate', () => {
  test('names its client by its common name', async () => {
    const { certificates, gate } = await start();
    certificates.issue('till');
    const ca = certificates.read('ca.crt');
    const answer = await request(gate.url, { ca, ...identityOf(certificates, 'till') });
    expect(statusOf(answer)).toBe(200);
    await eventually(gate.requests, ({ length }) => length === 1);
    expect(gate.requests()[0]).toMatchObject({ clientName: 'till', status: 200 });
  });

  test('is missing: 401, also in a session that is resumed', async () => {
    const { certificates, api, gate } = await start();
    const ca = certificates.read('ca.crt');
    const first = await request(gate.url, { ca });
    expect(statusOf(first)).toBe(401);
    expect(first.text).toContain('WWW-Authenticate: ClientCertificate realm="tidegate"');
    const { session } = first;
    if (session === undefined) throw new Error('no session to resume');
    const resumed = await request(gate.url, { ca, session });
    expect(resumed.isResumed).toBe(true);
    expect(statusOf(resumed)).toBe(401);
    expect(api.received).toEqual([]);
    expect(await gate.metric('tidegate_auth_rejected_total{reason="missing"}')).toBe(2);
  });

  test('of another authority is not accepted, nor is an expired one', async () => {
    const { certificates, api, gate } = await start();
    const other = authority();
    other.issue('till');
    certificates.issueExpired('old', 'DNS:old');
    const ca = certificates.read('ca.crt');
    for (const identity of [identityOf(other, 'till'), identityOf(certificates, 'old')]) {
      expect(statusOf(await request(gate.url, { ca, ...identity }))).toBe(401);
    }
    expect(api.received).toEqual([]);
    expect(await gate.metric('tidegate_auth_rejected_total{reason="untrusted_certificate"}')).toBe(1);
    expect(await gate.metric('tidegate_auth_rejected_total{reason="expired"}')).toBe(1);
  });

  test('names its client in a resumed session and over HTTP/2 too', async () => {
    const { certificates, gate } = await start({ auth: 'certificate: {name: san, namePrefix: "mtls:"}', http2: true });
    certificates.issue('till', '-addext', 'subjectAltName=DNS:till.example,URI:spiffe://shop/till');
    const identity = { ca: certificates.read('ca.crt'), ...identityOf(certificates, 'till') };
    const { session } = await request(gate.url, identity);
    if (session === undefined) throw new Error('no session to resume');
    const resumed = await request(gate.url, { ...identity, session });
    expect([resumed.isResumed, statusOf(resumed)]).toEqual([true, 200]);
    const http2 = connectHttp2(gate.url, identity);
    atEnd(() => http2.destroy());
    expect((await sendHttp2(http2, '/', { ':method': 'GET' })).status).toBe(200);
    const log = await eventually(gate.requests, ({ length }) => length === 3);
    expect(log.map(({ clientName }) => clientName)).toEqual(Array.from({ length: 3 }, () => 'mtls:spiffe://shop/till'));
  });

  test('of another authority is accepted once the file has that authority', async () => {
    const { certificates, gate } = await start();
    const other = authority();
    other.issue('till');
    const identity = { ca: certificates.read('ca.crt'), ...identityOf(other, 'till') };
    expect(statusOf(await request(gate.url, identity))).toBe(401);
    writeFileSync(certificates.path('ca.crt'), other.read('ca.crt'));
    await eventually(
      async () => statusOf(await request(gate.url, identity)),
      (status) => status === 200,
    );
  });

  test('yields to an API key of the same request', async () => {
    const file = makeKeyFile('shop');
    const { certificates, gate } = await start({ auth: `certificate: {}, apiKeys: {file: ${file.path}}` });
    certificates.issue('till');
    const identity = { ca: certificates.read('ca.crt'), ...identityOf(certificates, 'till') };
    expect(statusOf(await request(gate.url, identity, `Tidegate-Key: ${file.keys[0]}\r\n`))).toBe(200);
    expect(statusOf(await request(gate.url, identity, 'Tidegate-Key: wrong\r\n'))).toBe(401);
    await eventually(gate.requests, ({ length }) => length === 2);
    expect(gate.requests()[0]).toMatchObject({ clientName: 'shop' });
  });
});
