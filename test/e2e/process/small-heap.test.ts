import { expect, test } from 'vitest';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { beginFlood, flood } from '../../support/clients/flood.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** With the clients of per-client limits, 100 000. Set the variable to test more, which takes longer. */
const KEYS = Number(process.env['TIDEGATE_TEST_KEYS'] ?? 84_000);

/** Starts Tidegate with a heap of 256 MiB and one upstream for each kind of load. */
async function start() {
  const failed = Promise.withResolvers<undefined>();
  const { url } = await listen((request, response) => {
    request.resume();
    if (request.url === '/held') return;
    request.on('end', () => {
      if (request.url === '/failing') void failed.promise.then(() => response.writeHead(503).end());
      else response.end();
    });
  });
  const config = writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
log: {level: info}
limits: {overload: {eventLoopDelay: 1m}}   # this test covers the other bounds
clients: {key: ["header:x-api-key"], trustedProxies: [127.0.0.1]}
upstreams:
  shared: {url: "${url}", queue: {maxWait: 0}, rateLimit: {initialRate: 100/s, maxRate: 100/s}}
  own: {url: "${url}", rateLimit: {scope: client, initialRate: 1/s, maxRate: 1/s}}
  held: {url: "${url}", timeout: 2h, perTryTimeout: 2h, rateLimit: {initialRate: 10/s, maxRate: 10/s}, queue: {maxWait: 1h, maxDepth: 1000000}}
  failing:
    url: "${url}"
    timeout: 10m
    perTryTimeout: 5m
    queue: {maxWait: 5m}   # more uploads than connections: on a busy machine the last waits longer than a second
    retry: {attempts: 3, backOff: {strategy: fixed, baseInterval: 1s}, budget: {ratio: 10, burst: 100000}}
    rateLimit: {scope: client}
routes: [{path: /, upstream: shared}, {path: /own, upstream: own}, {path: /held, upstream: held}, {path: /failing, upstream: failing}]
`);
  const { ended, log } = startProcess(['--config', config], {
    env: { NODE_OPTIONS: '--max-old-space-size=256' },
  });
  const [listening] = await eventually(
    () => log().filter(({ msg }) => msg === 'listening'),
    ({ length }) => length === 1,
  );
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${String(listening?.['admin'])}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    return Number(line?.split(' ')[1]);
  };
  /** Until it is called, the responses to `/failing` are held. */
  const fail = (): void => failed.resolve(undefined);
  return { ended, log, url: String(listening?.['url']), metric, fail };
}

const used = (bound: string) => `tidegate_bound_used_ratio{bound="${bound}"}`;
const reached = (bound: string) => `tidegate_bound_reached_total{bound="${bound}"}`;
const TAIL = 'Host: x\r\nAuthorization: Bearer 0123456789012345678901234567890123\r\n';

test(
  'with a heap of 256 MiB, survives floods of client keys, retryable uploads and queued requests',
  async () => {
    const { ended, log, url, metric, fail } = await start();
    let isOver = false;
    void ended.then(() => (isOver = true));

    // Many keys: up to the limit of tracked clients, then up to that of per-client limits.
    const keys = await flood(url, {
      connections: 40,
      requests: KEYS,
      ahead: 8,
      request: (n) => `GET / HTTP/1.1\r\nX-Api-Key: shared-${n}\r\n${TAIL}\r\n`,
    });
    expect(keys.cut).toBe(0);
    expect((keys.answered[200] ?? 0) + (keys.answered[429] ?? 0)).toBe(KEYS);
    expect(await metric('tidegate_clients_tracked')).toBe(Math.min(KEYS, 100_000));
    const own = await flood(url, {
      connections: 40,
      requests: 16_000,
      ahead: 8,
      request: (n) => `GET /own HTTP/1.1\r\nX-Api-Key: own-${n}\r\n${TAIL}\r\n`,
    });
    expect(own).toEqual({ answered: { 200: 16_000 }, cut: 0 });
    expect(await metric(used('client_limits'))).toBe(1);
    expect(await metric(reached('client_limits'))).toBeGreaterThan(1000);
    expect(await metric('tidegate_clients_tracked')).toBe(100_000);
    expect(await metric(reached('clients'))).toBe(KEYS + 16_000 - 100_000);

    // Large bodies: as many as the replay buffer holds are retried, the others are sent once.
    const body = 'x'.repeat(60_000);
    const uploading = flood(url, {
      connections: 1300,
      requests: 1300,
      ahead: 1,
      request: (n) =>
        `POST /failing HTTP/1.1\r\nX-Api-Key: upload-${n}\r\nIdempotency-Key: ${n}\r\nContent-Length: 60000\r\n${TAIL}\r\n${body}`,
    });
    await eventually(
      () => metric(reached('replay_memory')),
      (count) => count > 0,
    );
    fail();
    expect(await uploading).toEqual({ answered: { 503: 1300 }, cut: 0 });
    expect(await metric('tidegate_replay_buffer_bytes')).toBe(0);

    // Queued and pipelined requests: as many as the heap has room for, and one refusal for each connection with more. One address
    // may not have all of them.
    const [held, hangUp] = beginFlood(url, {
      connections: 1000,
      requests: 11_000,
      ahead: 11,
      request: (n) =>
        `POST /held HTTP/1.1\r\nX-Api-Key: held-${n}\r\nX-Forwarded-For: 192.0.2.${n % 4}\r\nContent-Length: 8\r\n${TAIL}\r\namount=1`,
    });
    await eventually(
      () => metric(reached('requests')),
      (count) => count > 0,
    );
    expect(await metric(used('requests'))).toBeGreaterThan(0.9);
    expect(await metric(used('requests'))).toBeLessThanOrEqual(1 + 1000 / 9362);
    expect(await metric(used('heap'))).toBeLessThan(1);
    hangUp();
    await held;

    // It still serves afterwards.
    await eventually(
      () => metric(used('requests')),
      (share) => share === 0,
    );
    for (const path of ['/own', '/own/again']) {
      expect((await send(url, path, { headers: ['X-Api-Key', path] })).status).toBe(200);
    }
    expect(isOver).toBe(false);
    expect(log().filter(({ level }) => level === 'fatal' || level === 'error')).toEqual([]);
  },
  // A minute on a quiet machine.
  600_000 + KEYS,
);
