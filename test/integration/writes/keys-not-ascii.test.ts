/** Idempotency keys beyond ASCII: the bytes of a header and the text of a JSON body name the same write. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { openHttp2, sendHttp2 } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const certificates = makeCertificates();
beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1'));
afterAll(() => certificates.remove());

/** The bytes of the text in UTF-8, one character a byte, as Node writes and reads headers. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1');
const IDEMPOTENCY = 'idempotency: {header: Idempotency-Key, jsonField: key, ttl: 24h}';

/** Leaves the first write open, and rejects the others. */
async function start(more = '') {
  const upstream = await startHttpUpstream((n, response) =>
    n === 1 ? response.destroy() : response.writeHead(404).end(),
  );
  const gate = await startTidegate(
    `${more}upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, ${IDEMPOTENCY}}}\n`,
  );
  return { upstream, gate };
}

async function postJson(gate: Tidegate, key: string) {
  const headers = ['Content-Type', 'application/json'];
  const { status, header } = await send(gate.url, '/pay', { method: 'POST', headers, body: JSON.stringify({ key }) });
  return [status, header('tidegate-outcome')];
}

async function postHeader(gate: Tidegate, bytes: string) {
  const { status, header } = await send(gate.url, '/pay', {
    method: 'POST',
    headers: ['Idempotency-Key', bytes],
    body: Buffer.from('x'), // Node writes a head as UTF-8 if the body is text
  });
  return [status, header('tidegate-outcome')];
}

const UNKNOWN = [504, 'unknown'];

test.each([
  ['ASCII', 'order-1', 'order-1'],
  ['UTF-8', utf8('clé'), 'clé'],
  ['UTF-8 of an astral character', utf8('😀-1'), '😀-1'],
  ['UTF-8 behind a byte order mark', utf8('\u{FEFF}clé'), '\u{FEFF}clé'],
  ['ISO 8859-1, which is not UTF-8', 'cl\xE9', 'clé'],
])('a key in a header in %s is that of a repeat with it in the body', async (_, bytes, text) => {
  const { upstream, gate } = await start();
  expect(await postHeader(gate, bytes)).toEqual(UNKNOWN);
  expect(await postJson(gate, text)).toEqual(UNKNOWN);
  expect(await postHeader(gate, bytes)).toEqual(UNKNOWN);
  expect(await postJson(gate, utf8('clè'))).toEqual([404, undefined]);
  const sent = upstream.hits.map(({ headers }) => headers[headers.indexOf('Idempotency-Key') + 1]);
  expect([sent[0], sent[2]]).toEqual([bytes, bytes]);
});

test('a key in the body is that of a repeat with it in a header of HTTP/2', async () => {
  const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
  const { upstream, gate } = await start(`listen: {address: 127.0.0.1:0, tls: ${tls}, http2: true}\n`);
  const session = await openHttp2(gate.url, certificates.read('ca.crt'));
  const post = async (more: Record<string, string>, body: string) => {
    const { status, headers } = await sendHttp2(session, '/pay', { ':method': 'POST', ...more }, body);
    return [status, headers['tidegate-outcome']];
  };
  expect(await post({ 'content-type': 'application/json' }, JSON.stringify({ key: 'clé' }))).toEqual(UNKNOWN);
  expect(await post({ 'idempotency-key': utf8('clé') }, 'x')).toEqual(UNKNOWN);
  expect(upstream.hits[1]?.headers).toContain(utf8('clé'));
});
