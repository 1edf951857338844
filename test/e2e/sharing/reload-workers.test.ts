/** Reloads with several workers that share a limit. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const PATIENCE = 120_000;

/** Limits the wait for a response, so that a lost one fails the test quickly. */
function patient() {
  return { signal: AbortSignal.timeout(20_000) };
}

test(
  'a reload reaches all workers, changes their shared limit and discards removed upstreams',
  async () => {
    const [one, two] = [
      await startHttpUpstream((_n, response) => response.end('one')),
      await startHttpUpstream((_n, response) => response.end('two')),
    ];
    const gate = await startReloadable(`workers: 2\nupstreams: {api: {url: "${one.url}"}}`);
    const ask = async () => {
      const { status, body } = await send(gate.url, '/', patient());
      return `${status} ${body.toString()}`;
    };
    const many = async (count: number) => new Set(await Promise.all(Array.from({ length: count }, ask)));
    expect(await many(20)).toEqual(new Set(['200 one']));

    const bounded = `api: {url: "${two.url}", timeout: 30s, queue: {maxWait: 20s}, rateLimit: {maxRate: 20/s}}`;
    gate.rewrite(`workers: 2\nupstreams: {${bounded}}`);
    await eventually(gate.reloads, (count) => count === 1);
    const rate = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';
    expect(await gate.metric(rate)).toBe(20);
    const since = performance.now();
    expect(await many(31)).toEqual(new Set(['200 two']));
    expect(performance.now() - since).toBeGreaterThan(1200); // 30 intervals of 50 ms; fewer if a worker kept the old limit
    expect(gate.log().filter(({ msg }) => msg === 'configuration reloaded')).toHaveLength(1);

    gate.rewrite(`workers: 2\nupstreams: {fresh: {url: "${one.url}"}}`);
    await eventually(gate.reloads, (count) => count === 2);
    expect(await many(20)).toEqual(new Set(['200 one']));
    await eventually(
      () => gate.metric(rate),
      (seen) => seen === undefined,
    );
    await eventually(two.openConnections, (count) => count === 0);
    expect(await gate.metric('tidegate_config_last_reload_successful')).toBe(1);
    expect(await gate.metric('tidegate_worker_restarts_total')).toBe(0);
  },
  PATIENCE,
);

test(
  'a restarted worker starts with the configuration in effect',
  async () => {
    const [one, two] = [
      await startHttpUpstream((_n, response) => response.end('one')),
      await startHttpUpstream((_n, response) => response.end('two')),
    ];
    const gate = await startReloadable(`workers: 2\nupstreams: {api: {url: "${one.url}"}}`);
    gate.rewrite(`workers: 2\nupstreams: {api: {url: "${two.url}"}}`);
    await eventually(gate.reloads, (count) => count === 1);
    const pids = () => gate.log().flatMap(({ msg, pid }) => (msg === 'worker is serving' ? [Number(pid)] : []));
    for (const pid of pids()) process.kill(pid, 'SIGKILL');
    await eventually(pids, (all) => all.length === 4, 40_000);
    for (let n = 0; n < 6; n += 1) expect((await send(gate.url, '/', patient())).body.toString()).toBe('two');
    // A rejected reload changes no worker.
    gate.rewrite(`workers: 3\nupstreams: {api: {url: "${one.url}"}}`);
    await eventually(gate.problems, ({ length }) => length === 1);
    expect(gate.problems()).toEqual(['needs a restart: workers']);
    expect((await send(gate.url, '/', patient())).body.toString()).toBe('two');
  },
  PATIENCE,
);

test(
  'reloads under load lose no request, with several workers',
  async () => {
    const upstreams = [
      await startHttpUpstream((_n, response) => response.end('one')),
      await startHttpUpstream((_n, response) => response.end('two')),
    ];
    // On a busy machine, a token takes longer than the default of 1 s.
    const configOf = (n: number) =>
      `workers: 2\nupstreams: {api${n % 3}: {url: "${upstreams[n % 2]?.url}", timeout: ${20 + n}s, queue: {maxWait: 15s}, rateLimit: {scope: ${n % 4 === 0 ? 'client' : 'upstream'}, maxRate: ${3000 + n}/s}}}`;
    const gate = await startReloadable(configOf(0));
    const traffic = { isOver: false };
    const answers: string[] = [];
    const client = async () => {
      while (!traffic.isOver) {
        const sent = { ...patient(), method: 'POST', body: 'x'.repeat(2000) };
        const outcome = await send(gate.url, '/', sent).then(({ status }) => String(status), String);
        answers.push(outcome);
      }
    };
    const clients = Array.from({ length: 8 }, client);
    for (let n = 1; n <= 12; n += 1) {
      gate.rewrite(configOf(n));
      await eventually(gate.reloads, (count) => count === n);
    }
    traffic.isOver = true;
    await Promise.all(clients);
    expect([...new Set(answers)]).toEqual(['200']);
    expect(answers.length).toBeGreaterThan(50);
    expect(gate.log().filter(({ msg }) => String(msg).startsWith('worker exited'))).toEqual([]);
  },
  PATIENCE,
);
