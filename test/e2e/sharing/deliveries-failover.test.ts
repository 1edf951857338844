/** Deliveries in a Redis that Sentinel fails over while replicas accept and send. */
import { expect, test } from 'vitest';
import { headerOf, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startSentinel } from '../../support/redis/redis-sentinel.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

/** Milliseconds. Sentinel does nothing for 30 s after its machine stalled for 2 s. */
const WITHIN = 90_000;
const PATIENCE = 300_000;
const BEFORE = 30;
const AFTER = 60;

test(
  'what the new master has is delivered under the same ids, and replicas accept again, after a failover amid deliveries',
  async () => {
    const sentinel = await startSentinel({ password: 'secret', settings: { appendonly: 'yes' } });
    const received = new Map<string, Set<string>>();
    const shop = await startHttpUpstream((nth, response, { body, headers }) => {
      const { id } = JSON.parse(body.toString()) as { id: string };
      const ids = received.get(id) ?? new Set();
      received.set(id, ids.add(headerOf(headers, 'tidegate-delivery-id') ?? ''));
      response.writeHead(nth % 3 === 0 ? 500 : 200).end();
    });
    const delays = Array.from({ length: 60 }, () => '1s').join(', ');
    const replicas = await Promise.all(
      [0, 1].map(() =>
        startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: redis, url: "${sentinel.url}", timeout: 240ms}
upstreams: {shop: {url: "${shop.url}"}}
routes: [{path: /hooks, upstream: shop, deliver: {eventId: {json: id}, schedule: {delays: [${delays}]}}}]
`),
      ),
    );
    const headers = ['Content-Type', 'application/json'];
    /** As a provider does: again until it is acknowledged. Returns the id of the delivery. */
    const notify = async (n: number): Promise<string> => {
      const body = `{"id":"event-${n}"}`;
      let tries = n;
      const accepted = await eventually(
        () =>
          send(replicas[(tries += 1) % 2]?.url ?? '', '/hooks', { method: 'POST', headers, body }).catch(
            () => undefined,
          ),
        (response) => response?.status === 202,
        WITHIN,
      );
      return accepted?.header('tidegate-delivery-id') ?? '';
    };
    const ids = new Map<number, string>();
    for (let n = 0; n < BEFORE; n += 1) ids.set(n, await notify(n));
    // What is copied survives the failover: Redis copies asynchronously.
    const copied = await sentinel.master.client().wait(1, 10_000);
    expect(copied).toBe(1);
    await sentinel.master.kill();
    const during = Array.from({ length: AFTER - BEFORE }, async (_, i) =>
      ids.set(BEFORE + i, await notify(BEFORE + i)),
    );
    await eventually(sentinel.masterPort, (port) => port === sentinel.replica.port, WITHIN);
    await Promise.all(during);
    const states = () =>
      Promise.all(
        [...ids.values()].map(
          async (id) => (await send(replicas[0]?.url ?? '', `/.well-known/tidegate/deliveries/${id}`)).json()['state'],
        ),
      );
    const all = await eventually(states, (seen) => seen.every((state) => state === 'delivered'), WITHIN);
    expect(all).toHaveLength(AFTER);
    for (const [n, id] of ids) expect([n, [...(received.get(`event-${n}`) ?? [])]]).toEqual([n, [id]]);
  },
  PATIENCE,
);
