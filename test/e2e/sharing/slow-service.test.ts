/** Workers, and replicas, share what they learn from the latency of a service that rejects nothing. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { pause } from '../../support/pause.ts';
import { CLIENT_KEY, stateAt } from '../../support/proxy/replicas.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const PATIENCE = 300_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 60_000;

test(
  'all workers together send no more requests at once than the service can use',
  async () => {
    const workers = 4;
    const latency = { kind: 'constant', mean: 50 } as const;
    const upstream = await startUpstream({ limit: { kind: 'workers', workers }, latency });
    const api = `{url: "${upstream.url}", rateLimit: {learnFromLatency: true}}`;
    const gate = await startWorkers(`workers: 2\nupstreams: {api: ${api}}`);
    const traffic = startTraffic({ target: gate.url, clients: [{ name: 'all', rate: 40 }] });
    onTestFinished(() => traffic.stop());
    await eventually(
      () => upstream.stats().accepted,
      (accepted) => accepted > 100,
    );
    const more = startTraffic({ target: gate.url, clients: [{ name: 'more', rate: 160 }] });
    onTestFinished(() => more.stop());
    await eventually(
      () => gate.sum('tidegate_ratelimit_cuts_total{upstream="api",cause="latency"}'),
      (cuts) => cuts > 0,
      WITHIN,
    );
    await eventually(
      () => gate.sum('tidegate_ratelimit_places{upstream="api",scope="upstream"}'),
      (places) => places >= workers && places <= 5 * workers,
      WITHIN,
    );
    const few = await eventually(
      () => upstream.stats().inFlight,
      (inFlight) => inFlight <= 5 * workers,
      WITHIN,
    );
    expect(few).toBeLessThanOrEqual(5 * workers);
  },
  PATIENCE,
);

const WORKERS = 8;
/** Milliseconds in which a response is of use. */
const IN_TIME = 1000;

/** @param serviceTime of the upstream, in ms @param maxWait of a request in the queue */
async function startReplicas(serviceTime: number, maxWait: string): Promise<readonly Tidegate[]> {
  const { url: redis } = await startRedis();
  const { url } = await startUpstream({
    limit: { kind: 'workers', workers: WORKERS },
    latency: { kind: 'constant', mean: serviceTime },
  });
  const api = `{url: "${url}", queue: {maxWait: ${maxWait}}, rateLimit: {learnFromLatency: true}}`;
  const yaml = `${CLIENT_KEY}${stateAt(redis)}upstreams: {api: ${api}}\n`;
  return Promise.all([startTidegate(yaml), startTidegate(yaml)]);
}

/** @param rate requests a second at all replicas together */
function startClients(replicas: readonly Tidegate[], name: string, rate: number): void {
  for (const { url } of replicas) {
    const clients = [1, 2, 3].map((i) => ({ name: `${name}-${i}`, rate: rate / 3 / replicas.length }));
    const traffic = startTraffic({ target: url, clients });
    onTestFinished(() => traffic.stop(0));
  }
}

function requestsOf(replicas: readonly Tidegate[]): Record<string, unknown>[] {
  return replicas.flatMap((each) => each.requests());
}

test('two replicas refuse nothing at half the capacity of a service', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  // On a busy machine, requests that take long vary less.
  const replicas = await startReplicas(200, '20s');
  startClients(replicas, 'few', (0.5 * 1000 * WORKERS) / 200);
  const requests = await eventually(
    () => requestsOf(replicas),
    ({ length }) => length > 200,
  );
  stalls.unlessStalled(() => expect(requests.filter(({ status }) => status !== 200)).toEqual([]));
});

test('two replicas use a service fully at twice its capacity, with responses in time', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const replicas = await startReplicas(50, '500ms');
  const inTime = (): number =>
    requestsOf(replicas).filter(({ status, ms }) => status === 200 && Number(ms) <= IN_TIME).length;
  const capacity = (1000 * WORKERS) / 50;
  startClients(replicas, 'many', 2 * capacity);
  const cuts = 'tidegate_ratelimit_cuts_total{upstream="api",cause="latency"}';
  await eventually(
    () => Promise.all(replicas.map((each) => each.metric(cuts))),
    (counts) => counts.some((count) => count > 0),
    30_000,
    100,
  );
  await pause(5000);
  const [before, since] = [inTime(), performance.now()];
  await pause(8000);
  const used = (inTime() - before) / ((capacity * (performance.now() - since)) / 1000);
  stalls.unlessStalled(() => expect(used).toBeGreaterThan(0.85));
});
