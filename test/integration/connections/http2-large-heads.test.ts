/** Heads, interim responses and trailers over HTTP/2 that are small enough over HTTP/1.1, and too large ones. */
import { once } from 'node:events';
import type { ClientHttp2Session, ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:http2';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { toHeaderPairs } from '../../../src/http/headers/raw-headers.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { sendHttp2 } from '../../support/clients/http2-client.ts';
import { begin, send } from '../../support/clients/send.ts';
import type { Answerer } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();

const identity = certificates.issueServer();
afterAll(() => certificates.remove());

/** @param maxHeaderListSize the largest head that the client announces to accept */
async function start(answer: Answerer, maxHeaderListSize: number, more = '') {
  const upstream = await startHttpUpstream(answer);
  const { path, read } = certificates;
  const gate =
    await startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"}}
${more}`);
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
    ['GET', 201, 502, undefined],
    ['POST', 201, 504, 'unknown'],
    ['POST', 500, 504, 'unknown'],
    ['POST', 302, 502, undefined],
    ['POST', 422, 502, undefined],
    ['POST', 503, 502, undefined],
  ])('learns that the headers are more than it accepts: %s %i', async (method, answered, status, outcome) => {
    const { session, upstream } = await start(
      (_n, response, { target }) =>
        target === '/small' ? response.end() : response.writeHead(answered, fields(500, 'v'.repeat(36))).end('charged'),
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

  test('ends the reads that coalesce, although its client cannot have the head', async () => {
    const answer: Answerer = (_n, response) => response.writeHead(200, fields(500, 'v'.repeat(36))).end('read');
    const routes = 'routes: [{path: /, upstream: api, timeout: 1h, coalesce: true}]';
    const { session, gate } = await start(answer, 16 * 1024, routes);
    // The second would wait for the first.
    for (const _ of [1, 2]) expect((await sendHttp2(session, '/a')).json()['reason']).toBe('answer_unwritable');
    expect(await gate.metric('tidegate_requests_in_flight{route="/"}')).toBe(0);
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

describe('an upstream over HTTP/2', () => {
  /** Responds to `/small` without further fields. */
  async function startWith(answer: (stream: ServerHttp2Stream) => void) {
    const respond = (stream: ServerHttp2Stream, path: string | undefined): void => {
      if (path !== '/small') return answer(stream);
      stream.respond({ ':status': 200 });
      return void stream.end();
    };
    const upstream = await startHttp2(identity, (stream, _n, head) => respond(stream, head[':path']), {
      maxSendHeaderBlockLength: 2 ** 24,
    });
    const tls = `tls: {ca: ${certificates.path('ca.crt')}}`;
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", http2: true, ${tls}, retry: {attempts: 1}}}`,
    );
    return { upstream, gate };
  }

  function record(count: number, value: string): Record<string, string> {
    return Object.fromEntries(toHeaderPairs(fields(count, value)));
  }

  test('can send many headers and trailers', async () => {
    const { gate, upstream } = await startWith((stream) => {
      stream.respond({ ':status': 201, ...record(900, 'v') }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(record(900, 'v')));
      stream.end('charged');
    });
    const answer = await send(gate.url, '/v1/charges', { method: 'POST', body: 'amount=1' });
    expect([answer.status, answer.body.toString(), answer.trailers.length]).toEqual([201, 'charged', 1800]);
    expect(answer.headers.filter((name) => /^x-\d+$/.test(name))).toHaveLength(900);
    expect(upstream.heads).toHaveLength(1);
  });

  test('can send many headers in an interim response', async () => {
    const { gate } = await startWith((stream) => {
      stream.additionalHeaders({ ':status': 103, ...record(900, 'v') });
      stream.respond({ ':status': 201 });
      stream.end('charged');
    });
    const interim: number[] = [];
    const request = begin(gate.url, '/v1/charges', { method: 'POST' });
    request.on('information', ({ statusCode, rawHeaders }) => interim.push(statusCode, rawHeaders.length));
    request.end();
    await once(request, 'response');
    expect(interim).toEqual([103, 1800]);
  });

  test.each([
    ['GET', 502, undefined],
    ['POST', 504, 'unknown'],
  ])('is at fault if its headers exceed 64 KiB: %s', async (method, status, outcome) => {
    const { gate, upstream } = await startWith((stream) => {
      stream.respond({ ':status': 201, ...record(100, 'v'.repeat(700)) });
      stream.end('charged');
    });
    const answer = await send(gate.url, '/v1/charges', { method });
    expect(answer.status).toBe(status);
    expect(answer.header('tidegate-outcome')).toBe(outcome);
    expect(answer.header('proxy-status')).toContain('error=http_response_header_section_size');
    expect(answer.json()['reason']).toBe('answer_headers_too_large');
    expect((await send(gate.url, '/small')).status).toBe(200);
    expect(upstream.sessions()).toBe(1);
  });

  test('has its response cut if its trailers exceed 64 KiB', async () => {
    const { gate } = await startWith((stream) => {
      stream.respond({ ':status': 201 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(record(100, 'v'.repeat(700))));
      stream.end('charged');
    });
    await expect(send(gate.url, '/v1/charges')).rejects.toThrow();
    expect((await send(gate.url, '/small')).status).toBe(200);
  });
});
