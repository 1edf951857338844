/** Workers share what they learn from the latency of a service that rejects nothing. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

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
