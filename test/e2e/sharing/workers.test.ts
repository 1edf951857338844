/** Several worker processes share limits, over real sockets. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { isAlive, startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 90_000;
const CLIENTS = Array.from({ length: 10 }, (_, i) => `client-${i}`);
const KEYED = 'clients: {key: [header:x-api-key, ip]}';

test(
  'all workers together keep one rate, also while one is killed and replaced',
  async () => {
    const upstream = await startUpstream({ latency: { kind: 'constant', mean: 20 } });
    // Low enough for a busy machine whose timers are late.
    const rate = 20;
    const api = `{url: "${upstream.url}", rateLimit: {initialRate: ${rate}/s, maxRate: ${rate}/s}}`;
    const gate = await startWorkers(`workers: 2\n${KEYED}\nupstreams: {api: ${api}}`);
    const clients = CLIENTS.map((name) => ({ name, rate: 5 }));
    const traffic = startTraffic({ target: gate.url, clients });
    onTestFinished(() => traffic.stop());
    /** Starts to measure. The returned function gives the admitted rate since then as a fraction of `rate`. */
    const admitted = (): (() => number) => {
      const before = upstream.stats().accepted;
      const since = performance.now();
      return () => (upstream.stats().accepted - before) / ((rate * (performance.now() - since)) / 1000);
    };
    const admittedIn = async (seconds: number): Promise<number> => {
      const measured = admitted();
      await pause(1000 * seconds);
      return measured();
    };
    await eventually(
      () => upstream.stats().accepted,
      (accepted) => accepted > 10,
    );
    const inAll = admitted();
    expect(await admittedIn(3)).toBeGreaterThan(0.8);

    const counted = await gate.sum('tidegate_requests_total');
    const [victim = 0, other = 0] = gate.pids();
    process.kill(victim, 'SIGKILL');
    const meanwhile = await admittedIn(3);
    expect(meanwhile).toBeLessThan(1.1);
    expect(meanwhile).toBeGreaterThan(0.6); // the other worker gets the whole rate
    await eventually(
      () => gate.sum('tidegate_workers '),
      (serving) => serving === 2,
      30_000,
    );
    expect(isAlive(other)).toBe(true);
    expect(await gate.sum('tidegate_worker_restarts_total')).toBe(1);
    const after = await admittedIn(3);
    expect(after).toBeGreaterThan(0.75);
    expect(after).toBeLessThan(1.1);
    expect(inAll()).toBeLessThan(1.05);
    // Counts that the dead worker had reported are kept.
    expect(await gate.sum('tidegate_requests_total')).toBeGreaterThan(counted);

    await traffic.stop();
    const failed = Object.values(traffic.stats()).reduce((sum, client) => sum + client.failed, 0);
    expect(failed).toBeLessThan(40); // requests queued or in flight at the dead worker
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
      20_000,
    );
    await pause(1500);
    const before = upstream.stats();
    await pause(3000);
    const after = upstream.stats();
    expect((after.accepted - before.accepted) / 3).toBeGreaterThan(64);
    expect(after.rejected - before.rejected).toBeLessThan(0.04 * (after.accepted - before.accepted));
    await traffic.stop();
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
    const sent = Object.values(traffic.stats()).reduce((sum, client) => sum + client.sent, 0);
    expect(requests).toHaveLength(sent);
  },
  PATIENCE,
);
