/** Several processes go on with another configuration, and with the limit that they share. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { startReloadable } from '../support/reloadable.ts';
import { send } from '../support/send.ts';
import { eventually } from '../support/tidegate.ts';

const PATIENCE = 120_000;

/** Else one that is never answered would hold up the test for its own time. */
function patient() {
  return { signal: AbortSignal.timeout(20_000) };
}

test(
  'all workers take a new configuration; what they share is bounded anew, and removed upstreams are forgotten',
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
    await eventually(gate.reloads, (count) => count === 1, 20_000);
    const rate = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';
    expect(await gate.metric(rate)).toBe(20);
    const since = performance.now();
    expect(await many(31)).toEqual(new Set(['200 two']));
    expect(performance.now() - since).toBeGreaterThan(1200); // 30 intervals of 50 ms; fewer where workers had not heard
    expect(gate.log().filter(({ msg }) => msg === 'configuration reloaded')).toHaveLength(1);

    gate.rewrite(`workers: 2\nupstreams: {fresh: {url: "${one.url}"}}`);
    await eventually(gate.reloads, (count) => count === 2, 20_000);
    expect(await many(20)).toEqual(new Set(['200 one']));
    await eventually(
      () => gate.metric(rate),
      (seen) => seen === undefined,
      20_000,
    );
    await eventually(two.openConnections, (count) => count === 0);
    expect(await gate.metric('tidegate_config_last_reload_successful')).toBe(1);
    expect(await gate.metric('tidegate_worker_restarts_total')).toBe(0);
  },
  PATIENCE,
);

test(
  'a worker that is replaced begins with the configuration in effect',
  async () => {
    const [one, two] = [
      await startHttpUpstream((_n, response) => response.end('one')),
      await startHttpUpstream((_n, response) => response.end('two')),
    ];
    const gate = await startReloadable(`workers: 2\nupstreams: {api: {url: "${one.url}"}}`);
    gate.rewrite(`workers: 2\nupstreams: {api: {url: "${two.url}"}}`);
    await eventually(gate.reloads, (count) => count === 1, 20_000);
    const pids = () => gate.log().flatMap(({ msg, pid }) => (msg === 'a worker serves' ? [Number(pid)] : []));
    for (const pid of pids()) process.kill(pid, 'SIGKILL');
    await eventually(pids, (all) => all.length === 4, 40_000);
    for (let n = 0; n < 6; n += 1) expect((await send(gate.url, '/', patient())).body.toString()).toBe('two');
    // What is refused is refused for all.
    gate.rewrite(`workers: 3\nupstreams: {api: {url: "${one.url}"}}`);
    await eventually(gate.problems, ({ length }) => length === 1);
    expect(gate.problems()).toEqual(['needs a restart: workers']);
    expect((await send(gate.url, '/', patient())).body.toString()).toBe('two');
  },
  PATIENCE,
);

test(
  'reloads under load lose no request, with several workers as with one',
  async () => {
    const upstreams = [
      await startHttpUpstream((_n, response) => response.end('one')),
      await startHttpUpstream((_n, response) => response.end('two')),
    ];
    const configOf = (n: number) =>
      `workers: 2\nupstreams: {api${n % 3}: {url: "${upstreams[n % 2]?.url}", timeout: ${20 + n}s, rateLimit: {scope: ${n % 4 === 0 ? 'client' : 'upstream'}, maxRate: ${3000 + n}/s}}}`;
    const gate = await startReloadable(configOf(0));
    const traffic = { isOver: false };
    const answers: string[] = [];
    const client = async () => {
      while (!traffic.isOver) {
        const sent = { ...patient(), method: 'POST', body: 'x'.repeat(2000) };
        const told = await send(gate.url, '/', sent).then(({ status }) => String(status), String);
        answers.push(told);
      }
    };
    const clients = Array.from({ length: 8 }, client);
    for (let n = 1; n <= 12; n += 1) {
      gate.rewrite(configOf(n));
      await eventually(gate.reloads, (count) => count === n, 20_000);
    }
    traffic.isOver = true;
    await Promise.all(clients);
    expect([...new Set(answers)]).toEqual(['200']);
    expect(answers.length).toBeGreaterThan(50);
    expect(gate.log().filter(({ msg }) => String(msg).startsWith('a worker has ended'))).toEqual([]);
  },
  PATIENCE,
);
