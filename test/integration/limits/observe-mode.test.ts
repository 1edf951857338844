import { describe, expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { send } from '../../support/clients/send.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

async function observe(url: string, more = '', top = '') {
  const gate = await startTidegate(`
mode: observe
${top}
upstreams: {api: {url: "${url}", ${more}}}
clients: {key: ["header:x-api-key"]}
`);
  const ask = (headers: string[] = [], method = 'GET') =>
    send(gate.url, '/', { method, headers: ['X-Api-Key', 'a', ...headers] });
  const line = (nth: number) => eventually(gate.requests, ({ length }) => length > nth).then((lines) => lines[nth]);
  return { gate, ask, line };
}

/** The second request would wait 30 s, and the third a minute. */
const SLOW = 'rateLimit: {initialRate: 2/m, minRate: 1/m}, queue: {maxWait: 2m}, timeout: 3m';

describe('observe mode', () => {
  test('forwards what it would have rejected, and reports it in the log and in metrics', async () => {
    const origin = await startRecordingUpstream();
    const { gate, ask, line } = await observe(
      origin.url,
      'rateLimit: {initialRate: 1/m, minRate: 1/m}, queue: {maxWait: 0}',
    );
    const answers = [await ask(), await ask(), await ask()];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const answer of answers) {
      expect(answer.header('retry-after')).toBeUndefined();
      expect(answer.header('proxy-status')).toBeUndefined();
      expect(answer.took).toBeLessThan(20_000); // the rate would let one pass each minute
    }
    expect(await line(0)).toMatchObject({ outcome: 'forwarded', wouldHave: 'passed' });
    expect(await line(2)).toMatchObject({ outcome: 'forwarded', queuedMs: 0, wouldHave: 'refused over_share' });
    expect(await gate.metric('tidegate_ratelimit_decisions_total{upstream="api",decision="refused"}')).toBe(2);
    const ended = 'tidegate_requests_total{route="/",method="GET",code="200",outcome="forwarded"}';
    expect(await gate.metric(ended)).toBe(3);
    expect(await gate.metric('tidegate_mode{mode="observe"}')).toBe(1);
    expect(await gate.metric('tidegate_mode{mode="enforce"}')).toBe(0);
  });

  test('does not delay what would have waited', async () => {
    const origin = await startRecordingUpstream();
    const { ask, line } = await observe(origin.url, SLOW);
    for (let i = 0; i < 3; i += 1) expect((await ask()).took).toBeLessThan(15_000);
    for (const nth of [1, 2]) expect(await line(nth)).toMatchObject({ wouldHave: 'queued', queuedMs: 0 });
  });

  test('drains the virtual queue of what would have waited at the rate', async () => {
    const origin = await startRecordingUpstream();
    const { gate, ask } = await observe(origin.url, 'rateLimit: {initialRate: 2/s}, queue: {maxWait: 5s}');
    await Promise.all(Array.from({ length: 4 }, () => ask()));
    const queued = await gate.metric('tidegate_ratelimit_decisions_total{upstream="api",decision="queued"}');
    expect(queued).toBeGreaterThan(0);
    await eventually(
      () => gate.metric('tidegate_queue_wait_seconds_count{upstream="api"}'),
      (count) => count === queued,
    );
  });

  test('forwards a 429 unchanged, sends once, and reports the retry it would have made', async () => {
    const origin = await startRecordingUpstream((_, response) => {
      response.writeHead(429, { 'Retry-After': '7', 'Content-Type': 'text/plain' });
      response.end('too fast');
    });
    const { gate, ask, line } = await observe(origin.url);
    const answer = await ask();
    expect(answer.status).toBe(429);
    expect(answer.header('retry-after')).toBe('7');
    expect(answer.body.toString()).toBe('too fast');
    expect(answer.header('tidegate-attempts')).toBe('1');
    expect(origin.received).toHaveLength(1);
    expect(await line(0)).toMatchObject({ status: 429, attempts: 1, wouldHave: 'passed', wouldRetry: 'status_429' });
    expect((await ask()).status).toBe(429);
    expect(await line(1)).toMatchObject({ status: 429, attempts: 1, wouldHave: 'refused held' });
    expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(2);
  });

  test('does not retry an error, and reports that it would have', async () => {
    const origin = await startRecordingUpstream((_, response) => {
      response.statusCode = 503;
      response.end('down');
    });
    const { gate, ask, line } = await observe(origin.url);
    expect((await ask()).body.toString()).toBe('down');
    expect(await line(0)).toMatchObject({ status: 503, attempts: 1, sleptMs: 0, wouldRetry: 'status_5xx' });
    expect(origin.received).toHaveLength(1);
    expect(await gate.metric('tidegate_retries_total{upstream="api",reason="status_5xx"}')).toBe(1);
  });

  test('still reports when a write may have happened', async () => {
    const upstream = await startUpstream();
    const { ask } = await observe(upstream.url);
    const answer = await ask(['X-Practice-Script', 'reset', 'Idempotency-Key', 'k'], 'POST');
    expect(answer.status).toBe(504);
    expect(answer.header('tidegate-outcome')).toBe('unknown');
  });

  test('learns the limit of an overloaded upstream', AGAIN_IF_STALLED, async () => {
    const stalls = watchStalls();
    const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 50, burst: 10 } });
    const { gate, ask } = await observe(upstream.url, 'retry: {attempts: 1}');
    const rate = 'tidegate_ratelimit_rate_requests_per_second{upstream="api",scope="upstream"}';
    const until = performance.now() + 6000;
    const asked: Promise<number>[] = [];
    while (performance.now() < until) {
      asked.push(ask().then(({ status }) => status));
      await pause(9);
    }
    const statuses = await Promise.all(asked);
    stalls.unlessStalled(() => expect(new Set(statuses)).toEqual(new Set([200, 429])));
    const { received } = upstream.stats();
    expect(received).toBe(statuses.length);
    const learned = await gate.metric(rate);
    stalls.unlessStalled(() => {
      expect(learned).toBeGreaterThan(40);
      expect(learned).toBeLessThan(60);
    });
  });

  test('completes what is in flight in a drain, though it would otherwise be queued', async () => {
    const upstream = await startUpstream({ latency: { kind: 'constant', mean: 300 } });
    const { gate, ask } = await observe(upstream.url, SLOW, 'drain: {delay: 0, timeout: 50s}');
    const asked = Promise.all([ask(), ask(), ask()]);
    await eventually(
      () => upstream.stats().received,
      (count) => count === 3,
    );
    const since = performance.now();
    await gate.drain();
    expect(performance.now() - since).toBeLessThan(15_000); // of the 30 s that the second would wait
    expect((await asked).map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});
