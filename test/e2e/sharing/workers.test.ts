/** Several worker processes share limits, over real sockets. */
import { expect, onTestFinished, test } from 'vitest';
import type { TrafficCounts, TrafficGenerator } from '../../../src/simulator/practice/traffic-generator.ts';
import { MAX_LATENESS } from '../../../src/core/rate/pacer.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { isAlive, startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 300_000;
/** Milliseconds. Only what hangs takes as long: a busy machine sends less in some seconds, but not in all of a minute. */
const WITHIN = 60_000;
const CLIENTS = Array.from({ length: 10 }, (_, i) => `client-${i}`);
const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const sumOf = (traffic: TrafficGenerator, count: (counts: TrafficCounts) => number): number =>
  sum(Object.values(traffic.stats()).map(count));
const KEYED = 'clients: {key: [header:x-api-key, ip]}';

/** Waits `duration` ms by timers, `rate` each second. @returns how many of them were on time, from 0 to 1 */
async function shareOfTimersOnTime(rate: number, duration: number): Promise<number> {
  const until = performance.now() + duration;
  let [all, onTime] = [0, 0];
  while (performance.now() < until) {
    const due = performance.now() + 1000 / rate;
    await pause(1000 / rate);
    all += 1;
    if (performance.now() - due < MAX_LATENESS) onTime += 1;
  }
  return onTime / all;
}

test(
  'all workers together keep one rate, also while one is killed and replaced',
  async () => {
    const upstream = await startUpstream({ latency: { kind: 'constant', mean: 20 } });
    // Low enough for a busy machine whose timers are late.
    const rate = 10;
    const api = `{url: "${upstream.url}", rateLimit: {initialRate: ${rate}/s, maxRate: ${rate}/s}}`;
    const gate = await startWorkers(`workers: 2\n${KEYED}\nupstreams: {api: ${api}}`);
    const clients = CLIENTS.map((name) => ({ name, rate: 2.5 }));
    const since = performance.now();
    const traffic = startTraffic({ target: gate.url, clients });
    onTestFinished(() => traffic.stop());
    /** The rate since the traffic began, as a fraction of `rate`: no delay raises it, since nothing was sent before. */
    const inAll = (): number => upstream.stats().accepted / (1 + (rate * (performance.now() - since)) / 1000);
    /** Resolves when the rate of three seconds is so much of `rate`; on a busy machine not the first ones. */
    const admittedWithin = async (least: number, most: number): Promise<void> => {
      await eventually(
        async () => {
          const before = upstream.stats().accepted;
          const from = performance.now();
          await pause(3000);
          const admitted = (upstream.stats().accepted - before) / ((rate * (performance.now() - from)) / 1000);
          expect(inAll()).toBeLessThan(1.05);
          return admitted;
        },
        (admitted) => admitted > least && admitted < most,
        WITHIN,
      );
    };
    await eventually(
      () => upstream.stats().accepted,
      (accepted) => accepted > 10,
      WITHIN,
    );
    await admittedWithin(0.8, 1.1);

    const counted = await gate.sum('tidegate_requests_total');
    const [victim = 0, other = 0] = gate.pids();
    const unanswered = sumOf(traffic, ({ sent, answered, failed }) => sent - failed - sum(Object.values(answered)));
    process.kill(victim, 'SIGKILL');
    await admittedWithin(0.6, 1.1); // the other worker gets the whole rate
    await eventually(
      () => gate.sum('tidegate_workers '),
      (serving) => serving === 2,
      WITHIN,
    );
    expect(isAlive(other)).toBe(true);
    expect(await gate.sum('tidegate_worker_restarts_total')).toBe(1);
    await admittedWithin(0.75, 1.1);
    // Counts that the dead worker had reported are kept.
    expect(await gate.sum('tidegate_requests_total')).toBeGreaterThan(counted);

    await traffic.stop();
    // Requests queued or in flight at the dead worker: more where all are answered late.
    expect(sumOf(traffic, ({ failed }) => failed)).toBeLessThan(Math.max(40, unanswered));
    const of = (outcome: string) =>
      gate.sum(`tidegate_requests_total{route="/",method="GET",code="200",outcome="${outcome}`);
    const forwarded = await of('forwarded');
    expect(forwarded).toBeGreaterThan(0.5 * upstream.stats().accepted);
    expect(forwarded).toBeLessThanOrEqual(upstream.stats().accepted);

    gate.child.kill('SIGTERM');
    expect((await gate.ended).code).toBe(0);
  },
  PATIENCE,
);

test(
  'workers learn a hidden limit together, and log its state once',
  async () => {
    const upstream = await startUpstream({
      limit: { kind: 'token-bucket', rate: 80, burst: 10 },
      latency: { kind: 'constant', mean: 20 },
    });
    // An initial rate just above the limit is corrected at once; learning without one takes ten seconds.
    const api = `{url: "${upstream.url}", rateLimit: {initialRate: 95/s}}`;
    // At debug, all state changes are logged.
    const gate = await startWorkers(`workers: 2\nlog: {level: debug}\n${KEYED}\nupstreams: {api: ${api}}`);
    const traffic = startTraffic({ target: gate.url, clients: CLIENTS.map((name) => ({ name, rate: 16 })) });
    onTestFinished(() => traffic.stop());
    await eventually(
      () => upstream.stats().rejected,
      (rejected) => rejected > 0,
      WITHIN,
    );
    await pause(1500);
    // Once they know it, three seconds show it, though on a busy machine not the first ones.
    await eventually(
      async () => {
        const before = upstream.stats();
        const from = performance.now();
        const onTime = await shareOfTimersOnTime(80, 3000);
        const after = upstream.stats();
        const accepted = after.accepted - before.accepted;
        return {
          onTime,
          goodput: (1000 * accepted) / (performance.now() - from),
          waste: (after.rejected - before.rejected) / accepted,
          rate: await gate.sum('tidegate_ratelimit_rate_requests_per_second'),
        };
      },
      // With late timers they send less than they may.
      ({ onTime, goodput, waste, rate }) => waste < 0.04 && rate > 64 && (goodput > 64 || onTime < 0.95),
      2 * WITHIN,
    );
    await traffic.stop(WITHIN); // a request that is aborted may not be logged
    const changes = gate.log().filter(({ msg }) => msg === 'limit changed state');
    expect(changes.length).toBeGreaterThan(1);
    expect(changes.every(({ to, rate }) => to === 'blocked' || to === 'open' || Number(rate) > 0)).toBe(true);
    for (const [i, { from }] of changes.entries()) if (i > 0) expect(from).toBe(changes[i - 1]?.['to']);
    expect(changes.every(({ worker }) => worker === undefined)).toBe(true);
    expect(await gate.sum('tidegate_ratelimit_state{upstream="api",')).toBe(1);
    expect(await gate.sum('tidegate_ratelimit_rate_requests_per_second')).toBeLessThan(120);
    expect(await gate.sum('tidegate_ratelimit_cuts_total')).toBeGreaterThan(0);
    // Three processes write complete log lines, and every request is logged under its own id.
    gate.child.kill('SIGTERM');
    const { code, stdout } = await gate.ended;
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.filter((line) => !line.startsWith('{') || !line.endsWith('}'))).toEqual([]);
    const requests = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request');
    expect(new Set(requests.map(({ id }) => id)).size).toBe(requests.length);
    expect(new Set(requests.map(({ worker }) => worker)).size).toBe(2);
    expect(requests).toHaveLength(sumOf(traffic, ({ sent }) => sent));
  },
  PATIENCE,
);
