/** Clients share an HTTP/2 connection to an upstream: none can end it, or make the upstream end it, for the others. */
import type { ServerHttp2Stream } from 'node:http2';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';
import { openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import type { Received } from '../../support/clients/send.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

function start(url: string, upstream = '', more = ''): Promise<Tidegate> {
  const ca = certificates.path('ca.crt');
  return startTidegate(`${more}\nupstreams: {api: {url: "${url}", http2: true, tls: {ca: ${ca}}${upstream}}}`);
}

/** A write that waits for as long as the test takes. */
const PATIENT = ', timeout: 60s, perTryTimeout: 60s';

/** Answers `GET`s with the names and values received; a `POST` waits for `finish`. */
async function startEcho() {
  const posts: ServerHttp2Stream[] = [];
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      if (head[':method'] === 'POST') return void posts.push(stream);
      stream.respond({ ':status': 200 });
      stream.end(JSON.stringify(head));
    },
    { maxHeaderListPairs: 4000, settings: { maxHeaderListSize: 1_000_000 } },
  );
  return {
    ...upstream,
    posts,
    finish: () => {
      for (const stream of posts.splice(0)) {
        stream.respond({ ':status': 200 });
        stream.end('paid');
      }
    },
  };
}

/** Node's list of single-value fields (lib/internal/http2/util.js, kSingleValueFields), without pseudo-headers. */
const SINGLE = [
  ...['access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age'],
  ...['authorization', 'content-encoding', 'content-language', 'content-location', 'content-md5', 'content-range'],
  ...['content-type', 'date', 'dnt', 'etag', 'expires', 'from', 'if-match', 'if-modified-since', 'if-none-match'],
  ...['if-range', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'range'],
  ...['referer', 'retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent', 'x-content-type-options'],
];

/** Connection-specific or message framing fields, which HTTP/2 forbids (RFC 9113 §8.2.2). */
const OF_CONNECTION = [
  ...['TE: trailers', 'TE: trailers, deflate;q=0.5', 'TE: gzip', 'te:', 'HTTP2-Settings: AAMAAABk', 'Keep-Alive: 5'],
  ...['Connection: x-hop', 'Connection: te', 'Proxy-Connection: close', 'Upgrade: h2c', 'Trailer: x-sum'],
];

const twice = (field: string): string => `${field}\r\n${field.replace(/^[^:]+/, (name) => name.toUpperCase())}\r\n`;

describe('no head that a client sends disturbs the write of another on the same HTTP/2 connection', () => {
  const heads: readonly (readonly [name: string, fields: string])[] = [
    ...SINGLE.map((name) => [`${name} twice`, twice(`${name}: a`)] as const),
    ...OF_CONNECTION.flatMap((field) => [[field, `${field}\r\n`] as const, [`${field}, twice`, twice(field)] as const]),
    ['cookies', 'Cookie: a=1\r\ncookie: b=2\r\n'],
    ['names of JavaScript', twice('__proto__: x') + twice('constructor: y') + twice('toString: z')],
    ['nothing in a value', twice('x-a:')],
    ['bytes beyond ASCII, and tabs', 'X-A: caf\xe9\xff\x80\r\nX-B: a\tb\r\n'],
    ['every odd character of a name', "!#$%&'*+-.^_`|~: x\r\n"],
    ['two thousand fields', Array.from({ length: 1900 }, (_, i) => `X${i}: 1\r\n`).join('')],
    ['thirty thousand bytes', `X-A: ${'x'.repeat(30_000)}\r\n`],
    ['a length of none', 'Content-Length: 0\r\n'],
    ['a body where none is usual', 'Content-Length: 2\r\n\r\nhi'],
    ['an expectation', 'Expect: 100-continue\r\n'],
    ['another scheme, path, authority', twice('scheme: ftp') + twice('path: /x') + twice('authority: evil.example')],
    ['a status', twice('status: 200')],
    ['a priority', twice('priority: u=0, i')],
  ];

  test('when the head is sent', async () => {
    const upstream = await startEcho();
    const gate = await start(upstream.url, PATIENT);
    const write = send(gate.url, '/', { method: 'POST', body: 'pay' });
    await eventually(
      () => upstream.posts,
      ({ length }) => length === 1,
    );
    for (const [name, fields] of heads) {
      const end = fields.includes('\r\n\r\n') ? '' : '\r\n';
      const received = await sendRaw(gate.url, `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}${end}`);
      expect([name, received.slice(0, 12)]).toEqual([name, expect.stringMatching(/^HTTP\/1\.1 (?:200|4\d\d)$/)]);
    }
    upstream.finish();
    expect((await write).status).toBe(200);
    expect(upstream.sessions()).toBe(2); // the second for large heads
  });

  test('sends `TE: trailers` once', async () => {
    const upstream = await startEcho();
    const gate = await start(upstream.url);
    const answer = await send(gate.url, '/', { headers: ['TE', 'trailers', 'te', 'gzip, trailers', 'TE', 'gzip'] });
    expect(answer.json()).toMatchObject({ te: 'trailers' });
  });

  test('answers 400 to a head that exceeds the size limit because its Host is sent several times', async () => {
    const upstream = await startEcho();
    const gate = await start(upstream.url, `${PATIENT}, preserveHost: true`, 'forwarded: true');
    const write = send(gate.url, '/', { method: 'POST', body: 'pay' });
    await eventually(
      () => upstream.posts,
      ({ length }) => length === 1,
    );
    for (const [length, status] of [
      [10_000, 200],
      [18_000, 200],
      [24_000, 400],
      [31_000, 400],
    ] as const) {
      const answer = await send(gate.url, '/', { headers: ['Host', 'a'.repeat(length)] });
      expect([length, answer.status]).toEqual([length, status]);
      if (status === 400) expect(answer.json()).toMatchObject({ reason: 'unsendable' });
    }
    upstream.finish();
    expect((await write).status).toBe(200);
    expect(upstream.sessions()).toBe(2); // the second for large heads
  });
});

describe('clients that send requests and disconnect', () => {
  /** Closes a connection with many reset streams, as Node and others do (CVE-2023-44487). */
  const BORNE = 250;
  const AT_ONCE = 25;

  test('do not make the upstream close the connection of the others', async () => {
    const posts: ServerHttp2Stream[] = [];
    let abandoned = 0;
    const upstream = await startHttp2(
      identity,
      (stream, _nth, head) => {
        if (head[':method'] === 'POST') return void posts.push(stream);
        stream.on('close', () => (abandoned += 1));
      },
      { streamResetBurst: BORNE, streamResetRate: 1 },
    );
    const gate = await start(upstream.url, `${PATIENT}, connections: 1`, 'mode: observe');
    const writes: Promise<Received>[] = [];
    for (let left = 0; left < 2 * BORNE; left += AT_ONCE) {
      // One long-lived request per batch, so that each connection keeps one.
      writes.push(send(gate.url, '/', { method: 'POST', body: 'pay' }));
      const clients = await Promise.all(Array.from({ length: AT_ONCE }, () => openRaw(gate.url)));
      const before = upstream.heads.length;
      for (const client of clients) client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await eventually(
        () => upstream.heads.length - before,
        (heads) => heads >= clients.length,
      );
      const gone = abandoned;
      for (const { socket } of clients) socket.destroy();
      await eventually(
        () => abandoned - gone,
        (closed) => closed >= clients.length,
      );
    }
    await eventually(
      () => posts,
      ({ length }) => length === writes.length,
    );
    for (const stream of posts) stream.respond({ ':status': 200 }, { endStream: true });
    const statuses = (await Promise.all(writes)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(upstream.sessions()).toBeGreaterThan(1);
    // A worn-out connection closes once no request uses it, before it has been idle for 4 s.
    await eventually(
      () => upstream.open(),
      (open) => open <= 1,
      2000,
    );
  });
});
