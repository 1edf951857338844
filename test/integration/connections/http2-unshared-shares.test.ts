/** Over HTTP/2 to the upstream, clients share the connections without other requests fairly. */
import type { ServerHttp2Stream } from 'node:http2';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

/** Connections without other requests that there may be. */
const UNSHARED = 16;

/** @param clients how clients are identified */
async function start(more = '', clients = 'key: [header:X-Client]') {
  const held: ServerHttp2Stream[] = [];
  const answer = (stream: ServerHttp2Stream): void => {
    if (!stream.destroyed) stream.respond({ ':status': 204 }, { endStream: true });
  };
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    stream.resume().once('end', () => {
      if (head[':path'] === '/slow') held.push(stream);
      else if (head[':path'] !== '/held') answer(stream);
    });
  });
  let done = 0;
  /** Answers so many of the busy client's requests. */
  const finish = (count: number): void => {
    for (const stream of held.splice(0, count)) {
      done += 1;
      answer(stream);
    }
  };
  const gate = await startTidegate(`
clients: {${clients}}
${more}
upstreams:
  api:
    url: "${upstream.url}"
    http2: true
    connections: 1
    tls: {ca: ${certificates.path('ca.crt')}}
    timeout: 2m
    perTryTimeout: 2m
    queue: {maxWait: 2m}`);
  expect((await post(gate, 'calm', '/', 1)).status).toBe(204);
  return { upstream, held, finish, finished: () => done, gate };
}

const post = (gate: Tidegate, client: string, path: string, bytes: number, signal = new AbortController().signal) =>
  send(gate.url, path, { method: 'POST', headers: ['X-Client', client], body: Buffer.alloc(bytes), signal });

const inFlightIs = (gate: Tidegate, requests: number) =>
  eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === requests,
  );

const isGiven = (head: unknown): boolean => head !== undefined;
const isUnshared = (count: number): boolean => count === UNSHARED;

test.each([
  { busy: 'uploads', kept: 0, bytes: 70_000, calm: 70_000, more: '' },
  // The part of the memory for kept bodies that an address may have is full, so that all others are streamed.
  { busy: 'writes', kept: 65_536, bytes: 10, calm: 1, more: 'limits: {replayMemory: 72KiB}' },
])(
  'a client with many slow $busy delays those of others by one of them at most',
  async (options) => {
    const { gate, upstream, held, finish, finished } = await start(options.more);
    const before = upstream.heads.length;
    const leaving = new AbortController();
    const kept = post(gate, 'first', '/held', options.kept, leaving.signal).catch(() => undefined);
    await eventually(
      () => upstream.heads.length,
      (count) => count > before,
    );
    const busy = Array.from({ length: 3 * UNSHARED }, () => post(gate, 'busy', '/slow', options.bytes));
    await eventually(() => held.length, isUnshared);
    await inFlightIs(gate, 1 + busy.length);
    for (let i = 0; i < 4; i += 1) {
      const sent = upstream.heads.length;
      const calm = post(gate, 'calm', '/', options.calm);
      await inFlightIs(gate, 1 + busy.length - finished() + 1);
      // Each connection that becomes free goes to the next request. In order of arrival, all of the busy client's would be first.
      let next: string | undefined;
      let overtaken = 0;
      for (; next !== '/'; overtaken += 1) {
        expect(overtaken).toBeLessThan(UNSHARED);
        finish(1);
        next = (await eventually(() => upstream.heads[sent + overtaken], isGiven))?.[':path'];
      }
      expect((await calm).status).toBe(204);
      await eventually(() => held.length, isUnshared);
    }
    const finishing = setInterval(() => finish(UNSHARED), 10);
    onTestFinished(() => clearInterval(finishing));
    expect(new Set((await Promise.all(busy)).map(({ status }) => status))).toEqual(new Set([204]));
    leaving.abort();
    await kept;
  },
  120_000,
);

test('a client that holds its connections leaves one to other addresses that upload again and again', async () => {
  const { gate, upstream, held, finish } = await start('', 'key: [ip], trustedProxies: [127.0.0.1]');
  const upload = (address: string, path: string) =>
    send(gate.url, path, { method: 'POST', headers: ['X-Forwarded-For', address], body: Buffer.alloc(70_000) });
  expect((await upload('203.0.113.1', '/')).status).toBe(204);
  const busy = Array.from({ length: UNSHARED + 4 }, () => upload('203.0.113.2', '/slow'));
  await inFlightIs(gate, busy.length);
  await eventually(
    () => held.length,
    (count) => count === UNSHARED - 1,
  );
  for (let i = 0; i < 5; i += 1) expect((await upload('203.0.113.1', '/')).status).toBe(204);
  expect(held).toHaveLength(UNSHARED - 1);
  finish(4);
  await eventually(
    () => upstream.heads.filter((head) => head[':path'] === '/slow').length,
    (count) => count === UNSHARED - 1 + 4,
  );
  const finishing = setInterval(() => finish(UNSHARED), 10);
  onTestFinished(() => clearInterval(finishing));
  expect(new Set((await Promise.all(busy)).map(({ status }) => status))).toEqual(new Set([204]));
}, 120_000);
