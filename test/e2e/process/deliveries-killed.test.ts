import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { send } from '../../support/clients/send.ts';
import { freePort } from '../../support/free-port.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const OBJECTS = 8;
const EVENTS_OF_OBJECT = 5;
const UNORDERED = 600;
const KILLS = 5;

interface Notification {
  readonly id: string;
  readonly object?: string;
  readonly n: number;
}

test('kill -9 loses no accepted notification, repeats only under the same id, and keeps the order of each object', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
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
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, 'tidegate.yaml');
  writeFileSync(
    config,
    `
listen: 127.0.0.1:${port}
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
limits: {overload: {eventLoopDelay: 1h}}
upstreams: {shop: {url: "${shop.url}"}}
routes:
  - path: /hooks
    upstream: shop
    deliver:
      schedule: {delays: [${Array.from({ length: 60 }, () => '1s').join(', ')}]}
      eventId: {json: id}
      orderBy: {json: object}
      concurrency: 100
`,
  );
  const start = () => startProcess(['--config', config]);
  let process = start();

  /** As a provider does: again until it is answered with a 2xx. */
  const deliver = async (notification: Notification): Promise<void> => {
    const body = JSON.stringify(notification);
    const headers = ['Content-Type', 'application/json'];
    await eventually(
      () =>
        send(url, '/hooks', { method: 'POST', headers, body }).then(
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
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const until = (kill * UNORDERED) / (KILLS + 1);
    await eventually(
      () => next,
      (sent) => sent >= until,
    );
    process.child.kill('SIGKILL');
    await process.ended;
    process = start();
  }
  await Promise.all([...ordered, ...unordered]);

  const all = OBJECTS * EVENTS_OF_OBJECT + UNORDERED;
  await eventually(
    () => new Set(acknowledged.map(({ id }) => id)).size,
    (count) => count === all,
  );
  // An event that was accepted before a kill has the same id after it.
  expect(Array.from(webhookIds.values(), ({ size }) => size).filter((size) => size !== 1)).toEqual([]);
  for (let each = 0; each < OBJECTS; each += 1) {
    const order = acknowledged.filter(({ object }) => object === `object-${each}`).map(({ n }) => n);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
});
