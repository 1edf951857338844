/** Heads, interim responses and trailers over HTTP/2 that are small enough over HTTP/1.1. */
import { once } from 'node:events';
import type { ClientHttp2Session } from 'node:http2';
import { connect } from 'node:http2';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { toHeaderPairs } from '../../../src/http/headers/raw-headers.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { sendHttp2 } from '../../support/clients/http2-client.ts';
import type { Answerer } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();

beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'));
afterAll(() => certificates.remove());

/** @param maxHeaderListSize the largest head that the client announces to accept */
async function start(answer: Answerer, maxHeaderListSize: number) {
  const upstream = await startHttpUpstream(answer);
  const { path, read } = certificates;
  const gate =
    await startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"}}`);
  const session = connect(gate.url, {
    ca: read('ca.crt'),
    settings: { maxHeaderListSize },
    maxHeaderListPairs: 40_000,
  });
  onTestFinished(() => session.destroy());
  session.on('error', () => undefined);
  // Tidegate has read the settings before it reads a request that follows their acknowledgement.
  await Promise.all([once(session, 'connect'), once(session, 'localSettings')]);
  return { upstream, gate, session };
}

function fields(count: number, value: string): string[] {
  return Array.from({ length: count }, (_, i) => [`x-${i}`, value]).flat();
}

function countFields(headers: object): number {
  return Object.keys(headers).filter((name) => /^x-\d+$/.test(name)).length;
}

/** Another request on the connection is served, so the connection has survived. */
async function expectUsable(session: ClientHttp2Session): Promise<void> {
  expect((await sendHttp2(session, '/small')).status).toBe(200);
  expect(session.closed).toBe(false);
}

describe('a client over HTTP/2', () => {
  test.each([
    ['as many headers as fit', 1350, 'v'.repeat(36)],
    ['many headers of a few bytes', 6000, 'v'],
  ])('gets a response to a write with %s', async (_, count, value) => {
    const { session, upstream } = await start(
      (_n, response, { target }) =>
        target === '/small' ? response.end() : response.writeHead(201, fields(count, value)).end('charged'),
      2 ** 24,
    );
    const answer = await sendHttp2(session, '/v1/charges', { ':method': 'POST' }, 'amount=1');
    expect([answer.status, answer.body.toString(), countFields(answer.headers)]).toEqual([201, 'charged', count]);
    expect(upstream.hits).toHaveLength(1);
    await expectUsable(session);
  });

  test('gets trailers and interim responses with as many headers as fit', async () => {
    const { session } = await start((_n, response, { target }) => {
      if (target === '/small') return response.end();
      response.writeInformation(103, fields(1350, 'v'.repeat(36)));
      response.writeHead(200, ['Trailer', 'x-0']);
      response.write('served');
      response.addTrailers(toHeaderPairs(fields(1350, 'v'.repeat(36))));
      return response.end();
    }, 2 ** 24);
    const answer = await sendHttp2(session, '/');
    expect([answer.status, answer.body.toString(), countFields(answer.trailers)]).toEqual([200, 'served', 1350]);
    await expectUsable(session);
  });

  test.each([
    ['GET', 502, undefined],
    ['POST', 504, 'unknown'],
  ])('learns that the headers are more than it accepts: %s', async (method, status, outcome) => {
    const { session, upstream } = await start(
      (_n, response, { target }) =>
        target === '/small' ? response.end() : response.writeHead(201, fields(500, 'v'.repeat(36))).end('charged'),
      16 * 1024,
    );
    const answer = await sendHttp2(session, '/v1/charges', { ':method': method });
    expect([answer.status, answer.headers['tidegate-outcome'], answer.json()['reason']]).toEqual([
      status,
      outcome,
      'answer_unwritable',
    ]);
    expect(upstream.hits).toHaveLength(1);
    await expectUsable(session);
  });

  test('gets no interim response that is larger than it accepts, and the final one', async () => {
    const { session } = await start((_n, response, { target }) => {
      if (target !== '/small') response.writeInformation(103, fields(500, 'v'.repeat(36)));
      return response.end('served');
    }, 16 * 1024);
    expect((await sendHttp2(session, '/')).status).toBe(200);
    await expectUsable(session);
  });
});
