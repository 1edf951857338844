/** Writes with idempotency keys whose connection is ready only after the lease of their replica, or the lifetime of the key. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FRAME, frame } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { startHttpUpstream, type Hit } from '../../support/upstreams/http-upstream.ts';
import { answerOk, startFrames } from '../../support/upstreams/http2-upstream.ts';

const PATIENCE = 120_000;

/** A TLS server in front of an upstream. It does not begin the handshakes of connections that it holds. */
async function startHoldingServer(upstream: string) {
  const certificates = makeCertificates();
  onTestFinished(certificates.remove);
  const tls = { ...certificates.issueServer(), isServer: true };
  const sockets = new Set<Socket>();
  const held: (() => void)[] = [];
  let isHolding = true;
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    const begin = (): void => {
      const decrypted = new TLSSocket(socket, tls);
      const target = connect(Number(new URL(upstream).port), '127.0.0.1');
      for (const each of [decrypted, target]) each.on('error', () => undefined).on('close', () => socket.destroy());
      socket.on('close', () => target.destroy());
      decrypted.pipe(target).pipe(decrypted);
    };
    sockets.add(socket.on('error', () => undefined));
    if (isHolding) held.push(begin);
    else begin();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    target: `url: "https://127.0.0.1:${port}", tls: {ca: ${certificates.path('ca.crt')}}`,
    /** Resolves once it holds so many connections; it takes the next ones. */
    holds: async (count: number) => {
      await eventually(
        () => held.length,
        (length) => length === count,
      );
      isHolding = false;
    },
    /** Begins the handshakes of the connections that it holds. */
    release: () => {
      for (const begin of held.splice(0)) begin();
    },
  };
}

const TIMEOUTS = 'timeout: 90s, perTryTimeout: 90s, connectTimeout: 90s, retry: {attempts: 1}';

function pay({ url }: Tidegate, key: string) {
  return send(url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
}

/** Replica `one` reaches Redis over a relay, and its first connections to the upstream are held. */
async function startReplicas(respond: (hit: Hit, response: ServerResponse) => void) {
  const upstream = await startHttpUpstream((_nth, response, hit) => respond(hit, response));
  const front = await startHoldingServer(upstream.url);
  const redis = await startRedis();
  const relay = await startRelay(redis.url);
  onTestFinished(() => relay.close());
  const start = (port: number): Promise<Tidegate> =>
    startTidegate(`
state: {store: redis, url: "redis://127.0.0.1:${port}", timeout: 240ms}
upstreams: {api: {${front.target}, ${TIMEOUTS}, idempotency: {ttl: 1h}}}
`);
  const [one, other] = [await start(relay.port), await start(Number(new URL(redis.url).port))];
  const sentFor = (key: string): number => upstream.hits.filter(({ body }) => body.toString() === key).length;
  return { front, relay, one, other, sentFor };
}

const degraded = (gate: Tidegate, value: number) =>
  eventually(
    () => gate.metric('tidegate_store_degraded{store="redis"}'),
    (known) => known === value,
    60_000,
  );

test(
  'are not sent while another replica sends them, and are sent once if none has their key',
  async () => {
    const inProgress: ServerResponse[] = [];
    const { front, relay, one, other, sentFor } = await startReplicas((hit, response) => {
      if (hit.body.toString() === 'taken' && inProgress.length === 0) inProgress.push(response);
      else response.end('paid');
    });
    const waiting = [pay(one, 'taken'), pay(one, 'free')];
    await front.holds(waiting.length);
    await relay.partition();
    await degraded(one, 1);
    const repeat = pay(other, 'taken'); // it waits until the lease of the first replica has ended
    await eventually(
      () => inProgress.length,
      (length) => length === 1,
      60_000,
    );
    await relay.rejoin();
    await degraded(one, 0);
    front.release();
    const [taken, free] = await Promise.all(waiting);
    expect([taken?.status, taken?.json()['reason'], free?.status]).toEqual([409, 'key_in_use', 200]);
    inProgress[0]?.end('paid');
    expect((await repeat).status).toBe(200);
    expect([sentFor('taken'), sentFor('free')]).toEqual([1, 1]);
  },
  PATIENCE,
);

test(
  'are not sent while Redis does not say whether another replica has sent them',
  async () => {
    const { front, relay, one, other, sentFor } = await startReplicas((_hit, response) => response.end('paid'));
    const waiting = pay(one, 'order');
    await front.holds(1);
    await relay.partition();
    await degraded(one, 1);
    expect((await pay(other, 'order')).status).toBe(200);
    front.release();
    const late = await waiting;
    expect([late.status, late.json()['reason'], late.header('tidegate-outcome')]).toEqual([
      503,
      'key_store_lost',
      'unknown',
    ]);
    expect(sentFor('order')).toBe(1);
  },
  PATIENCE,
);

/** `order` waits; a repeat is answered, and the upstream forgets the key. */
async function payWhileWaiting(gate: Tidegate, isWaiting: () => Promise<unknown>) {
  const waiting = pay(gate, 'order');
  await isWaiting();
  expect((await pay(gate, 'order')).status).toBe(200);
  await eventually(
    async () => (await pay(gate, 'order')).status,
    (status) => status === 409,
  );
  return async () => {
    const { status, json } = await waiting;
    return [status, json()['reason']];
  };
}

const EXPIRING = 'idempotency: {ttl: 500ms, concurrent: pass}';

test('are not sent with `concurrent: pass` after the upstream has forgotten what another request sent', async () => {
  const upstream = await startHttpUpstream((_nth, response) => void response.end('paid'));
  const front = await startHoldingServer(upstream.url);
  const gate = await startTidegate(`upstreams: {api: {${front.target}, ${TIMEOUTS}, ${EXPIRING}}}`);
  const late = await payWhileWaiting(gate, () => front.holds(1));
  const sent = upstream.hits.length;
  front.release();
  expect(await late()).toEqual([409, 'key_expired']);
  expect(upstream.hits.length).toBe(sent);
});

test('are not moved to another connection by a GOAWAY after that time', async () => {
  const certificates = makeCertificates();
  onTestFinished(certificates.remove);
  let unread: TLSSocket | undefined;
  const upstream = await startFrames(certificates.issueServer(), (socket, stream) => {
    if (unread === undefined) unread = socket;
    else answerOk(socket, stream);
  });
  const target = `url: "${upstream.url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}`;
  const gate = await startTidegate(`upstreams: {api: {${target}, ${TIMEOUTS}, ${EXPIRING}}}`);
  const late = await payWhileWaiting(gate, () =>
    eventually(
      () => upstream.heads(),
      (heads) => heads === 1,
    ),
  );
  const sent = upstream.heads();
  unread?.write(frame(FRAME.goAway, 0, 0, encodeUint32s(0, 0)));
  expect(await late()).toEqual([409, 'key_expired']);
  expect(upstream.heads()).toBe(sent);
});
