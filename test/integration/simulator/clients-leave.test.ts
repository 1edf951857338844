/** Clients that disconnect before a service that becomes slow has answered. */
import { expect, onTestFinished, test } from 'vitest';
import { keepAlive, send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** After this time a client disconnects. */
const TIMEOUT = 1000;
const CLIENTS = 60;
/** Counted of the last requests that were answered or abandoned. */
const COUNTED = 200;

/** Clients that send one request after the other, and honour Retry-After. Returns how many of the last requests were answered. */
function startImpatientClients(url: string): () => number {
  const stopping = new AbortController();
  const ends: boolean[] = [];
  const run = async (): Promise<void> => {
    const agent = keepAlive();
    while (!stopping.signal.aborted) {
      const answer = await send(url, '/', { agent, signal: AbortSignal.timeout(TIMEOUT) }).catch(() => undefined);
      if (answer === undefined || answer.status === 200) ends.push(answer !== undefined);
      else await pause(1000 * Number(answer.header('retry-after')));
    }
    agent.destroy();
  };
  const running = Array.from({ length: CLIENTS }, run);
  onTestFinished(async () => {
    stopping.abort();
    await Promise.all(running);
  });
  return () => ends.slice(-COUNTED).filter((isAnswered) => isAnswered).length;
}

// With the timeout of the clients unknown, every request is abandoned, and the service works for nobody.
test('get answers from a service that could not answer any of them if it had all their requests', async () => {
  // 30 requests wait for each worker: 1.5 s.
  const upstream = await startUpstream({
    limit: { kind: 'workers', workers: 2 },
    latency: { kind: 'constant', mean: 50 },
  });
  const api = `{url: "${upstream.url}", retry: {attempts: 1}, rateLimit: {learnFromLatency: true}}`;
  const proxy = await startTidegate(`upstreams: {api: ${api}}`);
  const answered = startImpatientClients(proxy.url);
  const count = await eventually(answered, (each) => each > 0.8 * COUNTED, 60_000);
  expect(count).toBeGreaterThan(0.8 * COUNTED);
  // None of this is a failure of the upstream.
  expect(await proxy.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="errors"}')).toBe(0);
}, 120_000);
