/** A request that makes an upstream close its HTTP/2 connection ends no request of others. */
import type { ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import { startNginx } from '../../support/programs/ingresses.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { freeUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

function start(url: string, more = ''): Promise<Tidegate> {
  return startTidegate(
    `upstreams: {api: {url: "${url}", http2: true, timeout: 60s, perTryTimeout: 60s, tls: {ca: ${certificates.path('ca.crt')}}${more}}}`,
  );
}

describe('behind nginx, which closes the connection over a field of more than 8 KiB', () => {
  const LARGE: readonly (readonly [name: string, path: string, headers: string[]])[] = [
    ['a long value', '/', ['X-A', 'a'.repeat(30_000)]],
    ['a long token', '/', ['Authorization', `Bearer ${'eyJ0eX'.repeat(2000)}`]],
    ['long cookies', '/', ['Cookie', 'a=b; '.repeat(3000)]],
    ['a long path', `/${'~{'.repeat(10_000)}`, []],
    ['a long name', '/', ['x'.repeat(12_000), '1']],
  ];

  async function startBehindNginx() {
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const app = await startHttpUpstream((_nth, response, { method }) => {
      if (method === 'POST') void finished.then(() => response.end('paid'));
      else response.end('served');
    });
    const url = (await freeUrl()).replace('http:', 'https:');
    const { path } = certificates;
    await startNginx(
      { tidegate: app.url, app: app.url },
      `server { listen 80; listen ${new URL(url).host} ssl http2;
ssl_certificate ${path('server.crt')}; ssl_certificate_key ${path('server.key')};
location / { proxy_pass http://127.0.0.1:3000; } }`,
    );
    return { app, finish, url };
  }

  test('a large head leaves the writes of others alone', async () => {
    const { app, finish, url } = await startBehindNginx();
    const gate = await start(url, ', retry: {attempts: 2}');
    const write = send(gate.url, '/', { method: 'POST', body: 'pay' });
    await eventually(
      () => app.hits.length,
      (count) => count >= 2, // the first is nginx's check
    );
    for (const [name, path, headers] of LARGE) {
      const { status } = await send(gate.url, path, { headers });
      expect([name, status >= 400]).toEqual([name, true]);
    }
    finish();
    expect((await write).status).toBe(200);
  });

  test('a head that nginx accepts gets its response on its own connection', async () => {
    const { finish, url } = await startBehindNginx();
    finish();
    const gate = await start(url);
    for (let i = 0; i < 3; i += 1) {
      const answer = await send(gate.url, '/', { method: 'POST', body: 'pay', headers: ['X-A', 'a'.repeat(7000)] });
      expect([answer.status, answer.header('tidegate-attempts')]).toEqual([200, '1']);
    }
  });
});

test('a request that waits for one of our connections says nothing about the upstream', async () => {
  const held: ServerHttp2Stream[] = [];
  const finish = (stream: ServerHttp2Stream): void => stream.respond({ ':status': 204 }, { endStream: true });
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    if (head[':path'] === '/first') finish(stream);
    else if (head[':path'] === '/') held.push(stream);
  });
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", http2: true, retry: {attempts: 1}, tls: {ca: ${certificates.path('ca.crt')}}, connections: 1}}
routes: [{path: /, upstream: api}, {path: /hurried, upstream: api, perTryTimeout: 500ms}]`);
  expect((await send(gate.url, '/first')).status).toBe(204); // from now on, it is known to take several requests at a time
  const headers = ['X-A', 'a'.repeat(5000)]; // it may share no connection, and there are 16 for such requests
  const slow = Promise.all(Array.from({ length: 16 }, () => send(gate.url, '/', { headers })));
  const hurried = await Promise.all(Array.from({ length: 4 }, () => send(gate.url, '/hurried', { headers })));
  expect(hurried.map(({ status }) => status)).toEqual([504, 504, 504, 504]); // 502 would blame the upstream
  await eventually(
    () => held.length,
    (count) => count === 16,
  );
  held.forEach(finish);
  expect((await slow).map(({ status }) => status)).toEqual(Array.from({ length: 16 }, () => 204));
});

describe('retries of a request whose connection the upstream closed', () => {
  test.each([
    ['with GOAWAY, after it read the request', (stream: ServerHttp2Stream) => goAway(stream, stream.id ?? 0)],
    ['with GOAWAY, as if it had not read the request', (stream: ServerHttp2Stream) => goAway(stream, 0)],
    ['without GOAWAY', (stream: ServerHttp2Stream) => stream.session?.socket.destroy()],
  ])('leave the writes of others alone: %s', async (_, close) => {
    const posts: ServerHttp2Stream[] = [];
    const upstream = await startHttp2(identity, (stream, _nth, head) => {
      if (head[':path'] === '/closes') close(stream);
      else posts.push(stream);
    });
    const gate = await start(upstream.url, ', retry: {attempts: 4}');
    const closing = send(gate.url, '/closes');
    await eventually(upstream.sessions, (count) => count >= 1);
    await sleep(20); // the first retry follows after 50 ms or more
    const write = send(gate.url, '/', { method: 'POST', body: 'pay' });
    expect((await closing).status).toBe(502);
    expect(upstream.heads.filter((head) => head[':path'] === '/closes').length).toBeGreaterThan(1);
    await eventually(
      () => posts,
      ({ length }) => length === 1,
    );
    posts[0]?.respond({ ':status': 200 }, { endStream: true });
    expect((await write).status).toBe(200);
  });

  function goAway({ session }: ServerHttp2Stream, lastStreamId: number): void {
    session?.goaway(constants.NGHTTP2_PROTOCOL_ERROR, lastStreamId);
    setImmediate(() => session?.destroy());
  }

  test('reach an upstream that was restarted', async () => {
    let isDown = true;
    const upstream = await startHttp2(identity, (stream) => {
      if (!isDown) return stream.respond({ ':status': 204 }, { endStream: true });
      if (upstream.heads.length < 8) return;
      isDown = false;
      stream.session?.destroy();
    });
    const gate = await start(upstream.url);
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(gate.url, '/')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
  });
});

describe('requests with large heads', () => {
  const LARGE = ['X-A', 'a'.repeat(5000)];

  test('share a connection once the upstream has answered one of their size', async () => {
    const held: ServerHttp2Stream[] = [];
    const upstream = await startHttp2(identity, (stream, _nth, head) => {
      if (head[':path'] === '/held') held.push(stream);
      else stream.respond({ ':status': 204 }, { endStream: true });
    });
    const gate = await start(upstream.url, ', connections: 1');
    expect((await send(gate.url, '/', { headers: LARGE })).status).toBe(204);
    const sessions = upstream.sessions();
    // More than the connections that there may be without other requests.
    const COUNT = 40;
    const answers = Array.from({ length: COUNT }, () => send(gate.url, '/held', { headers: LARGE }));
    await eventually(
      () => held.length,
      (count) => count === COUNT,
    );
    expect(upstream.sessions() - sessions).toBeLessThanOrEqual(1);
    for (const stream of held) stream.respond({ ':status': 200 }, { endStream: true });
    for (const answer of answers) expect((await answer).status).toBe(200);
  });

  test('that wait for unshared connections need none after the first response', async () => {
    const held: ServerHttp2Stream[] = [];
    const upstream = await startHttp2(identity, (stream) => held.push(stream));
    const gate = await start(upstream.url, ', connections: 1');
    const small = send(gate.url, '/small'); // the upstream announces how many streams it takes
    await untilHeld(held, 1);
    held[0]?.respond({ ':status': 200 }, { endStream: true });
    expect((await small).status).toBe(200);
    const UNSHARED = 16;
    const answers = Array.from({ length: 30 }, () => send(gate.url, '/', { headers: LARGE }));
    await untilHeld(held, 1 + UNSHARED);
    held[1]?.respond({ ':status': 200 }, { endStream: true });
    await untilHeld(held, 31);
    for (const stream of held.slice(2)) stream.respond({ ':status': 200 }, { endStream: true });
    for (const answer of answers) expect((await answer).status).toBe(200);
  });

  async function untilHeld(held: readonly ServerHttp2Stream[], count: number): Promise<void> {
    await eventually(
      () => held.length,
      (length) => length >= count,
    );
  }
});
