/** Replicas deliver from one Redis, although they and Redis are killed. */
import { expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { send } from '../../support/clients/send.ts';
import { freePort } from '../../support/free-port.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const OBJECTS = 6;
const EVENTS_OF_OBJECT = 5;
const UNORDERED = 300;
/** Nothing that Redis has acknowledged is lost if it is killed. */
const DURABLE = { settings: { appendonly: 'yes', appendfsync: 'always' } };

interface Notification {
  readonly id: string;
  readonly object?: string;
  readonly n: number;
}

function replicaConfig(port: number, redis: string, shop: string): string {
  return writeConfigFile(`
listen: 127.0.0.1:${port}
admin: 127.0.0.1:0
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${redis}", timeout: 240ms}
limits: {overload: {eventLoopDelay: 1h}}
upstreams: {shop: {url: "${shop}"}}
routes:
  - path: /hooks
    upstream: shop
    deliver:
      schedule: {delays: [${Array.from({ length: 60 }, () => '1s').join(', ')}]}
      eventId: {json: id}
      orderBy: {json: object}
      concurrency: 50
`);
}

test(
  'kill -9 of replicas and of Redis loses no accepted notification, and keeps the order of each object',
  async () => {
    const random = seededRandom(7);
    const acknowledged: Notification[] = [];
    const webhookIds = new Map<string, Set<string>>();
    const shop = await startHttpUpstream((_n, response, { body, headers }) => {
      const notification = JSON.parse(body.toString()) as Notification;
      const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'webhook-id');
      const ids = webhookIds.get(notification.id) ?? new Set<string>();
      webhookIds.set(notification.id, ids.add(headers[at + 1] ?? ''));
      const isTaken = random() < 0.5;
      if (isTaken) acknowledged.push(notification);
      response.writeHead(isTaken ? 200 : 500).end();
    });
    const redis = await startRedis(DURABLE);
    const ports = [await freePort(), await freePort()];
    const configs = ports.map((port) => replicaConfig(port, redis.url, shop.url));
    const start = (i: number) => startProcess(['--config', configs[i] ?? '']);
    const replicas = ports.map((_, i) => start(i));

    /** As a provider does: again until it is answered with a 2xx, by one replica or the other. */
    const deliver = async (notification: Notification): Promise<void> => {
      const body = JSON.stringify(notification);
      const headers = ['Content-Type', 'application/json'];
      let tries = notification.n;
      await eventually(
        () =>
          send(`http://127.0.0.1:${ports[((tries += 1)) % 2]}`, '/hooks', { method: 'POST', headers, body }).then(
            ({ status }) => status,
            () => 0,
          ),
        (status) => status === 202,
      );
    };
    const ordered = Array.from({ length: OBJECTS }, async (_, each) => {
      const object = `object-${each}`;
      for (let n = 0; n < EVENTS_OF_OBJECT; n += 1) await deliver({ id: `${object}-${n}`, object, n });
    });
    let next = 0;
    const unordered = Array.from({ length: 8 }, async () => {
      while (next < UNORDERED) {
        const n = (next += 1);
        await deliver({ id: `event-${n}`, n });
      }
    });
    const faults = [
      async () => {
        replicas[0]?.child.kill('SIGKILL');
        await replicas[0]?.ended;
        replicas[0] = start(0);
      },
      () => redis.restart(),
      async () => {
        replicas[1]?.child.kill('SIGKILL');
        await replicas[1]?.ended;
        replicas[1] = start(1);
      },
    ];
    for (const [i, cause] of faults.entries()) {
      await eventually(
        () => next,
        (sent) => sent >= ((i + 1) * UNORDERED) / (faults.length + 1),
      );
      await cause();
    }
    await Promise.all([...ordered, ...unordered]);

    const all = OBJECTS * EVENTS_OF_OBJECT + UNORDERED;
    await eventually(
      () => new Set(acknowledged.map(({ id }) => id)).size,
      (count) => count === all,
      PATIENCE,
    );
    // An event that was accepted before a kill has the same id after it.
    expect(Array.from(webhookIds.values(), ({ size }) => size).filter((size) => size !== 1)).toEqual([]);
    for (let each = 0; each < OBJECTS; each += 1) {
      const order = acknowledged.filter(({ object }) => object === `object-${each}`).map(({ n }) => n);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
    }
  },
  PATIENCE,
);

test(
  'what a replica was sending as it was killed, another one sends again after its lease',
  async () => {
    const redis = await startRedis(DURABLE);
    const senders = new Set<string>();
    const shop = await startHttpUpstream((n, response, { headers }) => {
      senders.add(headers[headers.findIndex((name) => name.toLowerCase() === 'tidegate-delivery-attempt') + 1] ?? '');
      if (n > 1) response.writeHead(200).end();
    });
    const ports = [await freePort(), await freePort()];
    const [one, other] = ports.map((port) => startProcess(['--config', replicaConfig(port, redis.url, shop.url)]));
    await eventually(
      () => [one, other].map((each) => each?.log().some(({ msg }) => msg === 'listening')),
      (listening) => listening.every(Boolean),
    );
    const url = `http://127.0.0.1:${ports[0]}`;
    const accepted = await send(url, '/hooks', { method: 'POST', body: '{"id":"evt_1"}' });
    expect(accepted.status).toBe(202);
    await eventually(
      () => shop.hits.length,
      (hits) => hits === 1,
    );
    one?.child.kill('SIGKILL');
    const status = await eventually(
      async () => (await send(`http://127.0.0.1:${ports[1]}`, accepted.header('location') ?? '')).json(),
      ({ state }) => state === 'delivered',
    );
    // The attempt that was cut off is repeated with the same number.
    expect([status['attempts'], [...senders], shop.hits.length]).toEqual([1, ['1'], 2]);
  },
  PATIENCE,
);

test(
  'a replica that was suspended for longer than its lease does not undo what another one has delivered',
  async () => {
    const redis = await startRedis(DURABLE);
    const shop = await startHttpUpstream((n, response) => {
      if (n > 1) response.writeHead(200).end();
    });
    const ports = [await freePort(), await freePort()];
    const [one, other] = ports.map((port) => startProcess(['--config', replicaConfig(port, redis.url, shop.url)]));
    await eventually(
      () => [one, other].map((each) => each?.log().some(({ msg }) => msg === 'listening')),
      (listening) => listening.every(Boolean),
    );
    const accepted = await send(`http://127.0.0.1:${ports[0]}`, '/hooks', { method: 'POST', body: '{"id":"evt_1"}' });
    await eventually(
      () => shop.hits.length,
      (hits) => hits === 1,
    );
    one?.child.kill('SIGSTOP');
    const read = async () => (await send(`http://127.0.0.1:${ports[1]}`, accepted.header('location') ?? '')).json();
    const delivered = await eventually(read, ({ state }) => state === 'delivered');
    one?.child.kill('SIGCONT');
    // Its attempt fails: it has waited too long for the response.
    await eventually(
      () => one?.log().filter(({ msg, outcome }) => msg === 'request' && outcome !== 'accepted') ?? [],
      ({ length }) => length === 1,
    );
    const second = await send(`http://127.0.0.1:${ports[0]}`, '/hooks', { method: 'POST', body: '{"id":"evt_2"}' });
    expect(second.status).toBe(202);
    expect(await read()).toEqual(delivered);
    expect([delivered['attempts'], shop.hits.filter(({ body }) => body.toString().includes('evt_1')).length]).toEqual([
      1, 2,
    ]);
  },
  PATIENCE,
);
