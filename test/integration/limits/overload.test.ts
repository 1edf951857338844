import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { begin, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const reached = (bound: string) => `tidegate_bound_reached_total{bound="${bound}"}`;
const used = (bound: string) => `tidegate_bound_used_ratio{bound="${bound}"}`;

/** Blocks the event loop of this process again and again, with a moment between. */
async function blockEventLoop(times: number, each: number): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    const until = performance.now() + each;
    while (performance.now() < until);
    await pause(5);
  }
}

describe('while the event loop is delayed', () => {
  test('rejects requests with a Retry-After, and admits them again afterwards', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('served'));
    const gate = await startTidegate(
      `limits: {overload: {eventLoopDelay: 200ms}}\nupstreams: {api: {url: "${upstream.url}"}}`,
    );
    expect((await send(gate.url, '/')).status).toBe(200);
    const share = () => gate.metric('tidegate_overload_shed_ratio');
    while ((await share()) < 0.3) await blockEventLoop(2, 500);
    const shed = await eventually(
      () => send(gate.url, '/', { method: 'POST', body: 'amount=1' }),
      ({ status }) => status === 503,
    );
    expect(shed.json()).toMatchObject({ status: 503, reason: 'overloaded', title: 'Temporarily reduced capacity' });
    expect(shed.json()['type']).toBe('https://iana.org/assignments/http-problem-types#temporary-reduced-capacity');
    expect(shed.header('content-type')).toBe('application/problem+json');
    expect(shed.header('proxy-status')).toBe('tidegate; error=http_request_denied; details="overloaded"');
    expect(Number(shed.header('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(shed.header('retry-after'))).toBeLessThanOrEqual(4);

    for (const path of ['/livez', '/readyz', '/metrics']) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => fetch(`${gate.adminUrl}${path}`)));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    }
    expect(await gate.metric('tidegate_overload_episodes_total')).toBe(1);
    const turnedAway = await gate.metric(reached('event_loop'));
    expect(turnedAway).toBeGreaterThan(0);
    const posts = upstream.hits.filter(({ method }) => method === 'POST').length;
    const asked = 'tidegate_requests_total{route="(none)",method="POST",code="503",outcome="refused"}';
    expect(await gate.metric(asked)).toBe(turnedAway);
    expect(await gate.metric('tidegate_requests_total{route="/",method="POST",code="200",outcome="forwarded"}')).toBe(
      posts,
    );

    await eventually(share, (seen) => seen === 0);
    expect((await send(gate.url, '/')).status).toBe(200);
    const warnings = gate.log().filter(({ msg }) => String(msg).startsWith('overload'));
    expect(warnings).toMatchObject([{ level: 'warn', cause: 'event_loop' }]);
    expect(gate.requests().some(({ reason }) => reason === 'overloaded')).toBe(false);
  });

  test('rejects nothing for a single long pause', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end('served'));
    const gate = await startTidegate(
      `limits: {overload: {eventLoopDelay: 100ms}}\nupstreams: {api: {url: "${upstream.url}"}}`,
    );
    await pause(200);
    await blockEventLoop(1, 1500);
    await pause(200);
    expect(await gate.metric(used('event_loop'))).toBeGreaterThan(0.2);
    expect(await gate.metric('tidegate_overload_episodes_total')).toBe(0);
  });
});

describe('concurrent requests', () => {
  test('are bounded: the next is rejected, and admitted when one has ended', async () => {
    const { url } = await listen((request, response) => {
      if (request.url === '/slow') return;
      response.end();
    });
    const gate = await startTidegate(`limits: {requests: 3}\nupstreams: {api: {url: "${url}"}}`);
    const slow = Array.from({ length: 3 }, () => {
      const outgoing = begin(gate.url, '/slow', {});
      outgoing.end();
      return outgoing;
    });
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 1,
    );
    const refused = await send(gate.url, '/');
    expect(refused.status).toBe(503);
    expect(refused.json()).toMatchObject({ reason: 'too_many_requests' });
    expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await gate.metric(reached('requests'))).toBe(1);
    slow[0]?.destroy();
    await eventually(
      () => send(gate.url, '/'),
      ({ status }) => status === 200,
    );
  });

  describe('of one address leave a ninth of the bound to others', () => {
    const BUSY = '203.0.113.66';
    const CALM = '198.51.100.1';

    async function start() {
      const { url } = await listen((request, response) => {
        if (request.url === '/slow') return void request.resume();
        response.end();
      });
      const gate = await startTidegate(
        `limits: {requests: 18}\nclients: {trustedProxies: [127.0.0.1]}\nupstreams: {api: {url: "${url}"}}`,
      );
      const ask = (address: string) => send(gate.url, '/', { headers: ['X-Forwarded-For', address] });
      const expectPartKept = async () => {
        const refused = await ask(BUSY);
        expect(refused.status).toBe(503);
        expect(refused.json()).toMatchObject({ reason: 'too_many_requests' });
        expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(1);
        expect((await ask(CALM)).status).toBe(200);
      };
      return { gate, ask, expectPartKept };
    }

    test('with a connection each', async () => {
      const { gate, ask, expectPartKept } = await start();
      const slow = Array.from({ length: 16 }, () => {
        const outgoing = begin(gate.url, '/slow', { headers: ['X-Forwarded-For', BUSY] });
        outgoing.end();
        return outgoing;
      });
      await eventually(
        () => gate.metric(used('requests')),
        (share) => share === 16 / 18,
      );
      await expectPartKept();
      expect(await gate.metric(reached('requests'))).toBe(1);
      slow[0]?.destroy();
      await eventually(
        () => ask(BUSY),
        ({ status }) => status === 200,
      );
    });

    test('pipelined, with refused ones that wait on each of its connections', async () => {
      const { gate, expectPartKept } = await start();
      const slow = `GET /slow HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${BUSY}\r\n\r\n`;
      const clients = await Promise.all(Array.from({ length: 4 }, () => openRaw(gate.url)));
      // The second time, one refusal waits on each connection.
      for (const count of [16, 16 + 4]) {
        for (const client of clients) client.write(slow.repeat(4));
        await eventually(
          () => gate.metric(used('requests')),
          (share) => share === count / 18,
        );
      }
      await expectPartKept();
      for (const client of clients) client.socket.destroy();
      await eventually(
        () => gate.metric(used('requests')),
        (share) => share === 0,
      );
    });
  });

  test('are bounded on one connection too, queued ones included: the next is rejected in its turn, as the last', async () => {
    const held: ServerResponse[] = [];
    let isReleased = false;
    const { url } = await listen((_, response) => {
      if (isReleased) response.end();
      else held.push(response);
    });
    // One address may have 50 of these.
    const gate = await startTidegate(`limits: {requests: 56}\nupstreams: {api: {url: "${url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200));
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 51 / 56,
    );
    client.write('GET /more HTTP/1.1\r\nHost: x\r\n\r\nnot HTTP\r\n\r\n');
    expect(await gate.metric(reached('requests'))).toBe(1);
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    isReleased = true;
    held[0]?.end();
    const statuses = [...(await client.ended(20_000)).matchAll(/^HTTP\/1\.1 (\d+) /gm)].map(([, status]) => status);
    expect(statuses).toEqual([...Array.from({ length: 50 }, () => '200'), '503']);
    expect(client.received()).toMatch(/"reason":"too_many_requests"/);
    expect(client.received().slice(client.received().indexOf('HTTP/1.1 503 '))).toMatch(/\r\nConnection: close\r\n/i);
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 0,
    );
    expect(gate.requests()).toHaveLength(51);
  });

  test.each([
    ['a request', 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a write whose body does not arrive', 'POST /next HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\namo'],
    ['a request with another expectation', 'GET /next HTTP/1.1\r\nHost: x\r\nExpect: other\r\n\r\n'],
  ])('never break off a write under way, when %s follows it on its connection', async (_, next) => {
    const held: ServerResponse[] = [];
    const { url } = await listen((request, response) => {
      request.resume();
      held.push(response);
    });
    const gate = await startTidegate(`limits: {requests: 1}\nupstreams: {api: {url: "${url}"}}`);
    const client = await openRaw(gate.url);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\namount=1');
    await eventually(
      () => held.length,
      (count) => count === 1,
    );
    // Dropped: a second charge, and upgrades, for which Node would take the connection away.
    const dropped = ['POST /', 'CONNECT x:1', 'PRI *'].map(
      (line) => `${line} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    client.write(next + dropped.join(''));
    await eventually(
      () => gate.metric(reached('requests')),
      (count) => count === 1,
    );
    held[0]?.writeHead(201).end('paid');
    const answers = await client.ended(20_000);
    expect([...answers.matchAll(/^HTTP\/1\.1 (\d+) /gm)].map(([, status]) => status)).toEqual(['201', '503']);
    expect(held).toHaveLength(1);
    expect(gate.requests().map(({ path, outcome }) => [path, outcome])).toEqual([
      ['/', 'forwarded'],
      ['/next', 'refused'],
    ]);
  });

  test('end with a client that leaves while its last request waits to be refused', async () => {
    const { url } = await listen((request) => void request.resume());
    const gate = await startTidegate(`limits: {requests: 1}\nupstreams: {api: {url: "${url}"}}`);
    const client = await openRaw(gate.url);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3));
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 2,
    );
    client.socket.destroy();
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 0,
    );
    expect(gate.requests()).toMatchObject([{ outcome: 'client_gone' }]);
  });

  test('are bounded however many connections pipeline them, in pieces of any size', async () => {
    const { url } = await listen((request, response) => {
      request.resume();
      setTimeout(() => response.end(), 20);
    });
    const gate = await startTidegate(
      `log: {level: silent}\nlimits: {requests: 100}\nupstreams: {api: {url: "${url}"}}`,
    );
    const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\namount=1';
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(
        Array.from({ length: 15 }, async (_, i) => {
          const client = await openRaw(gate.url);
          for (let sent = 0; sent < 200 && !client.socket.destroyed; sent += 20) {
            client.write(post.repeat(20));
            await pause((i * sent) % 7);
          }
          await pause(20);
          client.socket.destroy();
        }),
      );
    }
    await eventually(
      () => gate.metric(used('requests')),
      (share) => share === 0,
    );
    expect(await gate.metric(reached('requests'))).toBeGreaterThan(0);
    expect((await send(gate.url, '/')).status).toBe(200);
  });

  test('include a write that is completed after its client disconnected', async () => {
    const { url } = await listen((request) => void request.resume());
    const gate = await startTidegate(`
limits: {requests: 1}
upstreams: {api: {url: "${url}", retry: {onClientGone: finish}}}
`);
    const body = 'amount=1';
    const leaving = begin(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body });
    leaving.end(body);
    await eventually(
      () => gate.view().limits[0]?.inFlight,
      (count) => count === 1,
    );
    leaving.destroy();
    await pause(100);
    expect((await send(gate.url, '/')).json()).toMatchObject({ reason: 'too_many_requests' });
  });
});

test('bounds connections: one more is closed at once and counted', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`limits: {connections: 2}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const first = await openRaw(gate.url);
  await openRaw(gate.url);
  await eventually(
    () => gate.metric(used('connections')),
    (share) => share === 1,
  );
  const { hostname, port } = new URL(gate.url);
  const third = connect({ host: hostname, port: Number(port) });
  onTestFinished(() => void third.destroy());
  let closed = false;
  third.on('error', () => undefined);
  third.on('close', () => (closed = true));
  third.resume();
  await eventually(
    () => closed,
    (seen) => seen,
  );
  expect(await gate.metric(reached('connections'))).toBe(1);
  first.socket.destroy();
  await eventually(
    () =>
      send(gate.url, '/').then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );
});
