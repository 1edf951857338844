/** A practice upstream that never refuses: requests wait for its workers. */
import { afterEach, expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import type { PracticeServer } from '../../../src/simulator/practice/practice-server.ts';
import type { PracticeSpec } from '../../../src/simulator/practice/practice-spec.ts';
import { startPracticeServer } from '../../../src/simulator/practice/practice-server.ts';

const running: PracticeServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((practice) => practice.close()));
});

async function start(spec: PracticeSpec) {
  const practice = await startPracticeServer(spec);
  running.push(practice);
  return practice;
}

const WORKERS = { kind: 'workers', workers: 1 } as const;
const latency = { kind: 'constant', mean: 100 } as const;

/** Sends so many requests at once. @returns when each was answered, in the order of sending, in ms */
async function answerTimes({ url }: PracticeServer, count: number): Promise<number[]> {
  const since = performance.now();
  return Promise.all(
    Array.from({ length: count }, async () => {
      expect((await send(url, '/')).status).toBe(200);
      return performance.now() - since;
    }),
  );
}

test('serves one request after the other with one worker', async () => {
  const practice = await start({ limit: WORKERS, latency });
  const times = (await answerTimes(practice, 4)).toSorted((a, b) => a - b);
  for (const [i, at] of times.entries()) expect(at).toBeGreaterThan(99 * (i + 1));
  expect(practice.stats()).toMatchObject({ limit: 1, accepted: 4, inFlight: 0, answered: { 200: 4 } });
});

/** Sends a request, and disconnects once the upstream works on it. */
async function askAndLeave(practice: Awaited<ReturnType<typeof start>>): Promise<void> {
  const leaving = new AbortController();
  const left = send(practice.url, '/', { signal: leaving.signal });
  await eventually(
    () => practice.stats().inFlight,
    (count) => count === 1,
  );
  leaving.abort();
  await expect(left).rejects.toThrow();
}

test('reports how long each request waited for a worker, abandoned ones included', async () => {
  const practice = await start({ limit: WORKERS, latency });
  await answerTimes(practice, 1);
  await askAndLeave(practice);
  const [took = 0] = await answerTimes(practice, 1);
  const waits = practice.waits.list();
  expect(await (await fetch(`${practice.url}/practice/waits`)).json()).toEqual(waits);
  const [alone, abandoned, last] = waits;
  expect(waits).toHaveLength(3);
  expect([alone?.wait, abandoned?.wait]).toEqual([expect.closeTo(0), expect.closeTo(0)]);
  expect(last?.wait).toBeGreaterThanOrEqual(0);
  expect(last?.wait).toBeLessThan(took);
  expect((last?.at ?? 0) - (abandoned?.at ?? 0)).toBeGreaterThan(99);
  practice.reset();
  expect(practice.waits.list()).toEqual([]);
});

test('serves all requests at once, each more slowly, with a worker that they share', async () => {
  const practice = await start({ limit: { ...WORKERS, discipline: 'sharing' }, latency });
  for (const at of await answerTimes(practice, 3)) expect(at).toBeGreaterThan(200);
});

test('lets requests wait for a connection of the pool behind, and slows down in a slowdown', async () => {
  const pool = { connections: 1, latency: { kind: 'constant', mean: 100 } } as const;
  const practice = await start({ limit: { ...WORKERS, workers: 9, pool, slowdowns: [{ factor: 3 }] }, latency });
  const times = (await answerTimes(practice, 2)).toSorted((a, b) => a - b);
  expect(times[0]).toBeGreaterThan(399);
  expect(times[1]).toBeGreaterThan(499);
});

test('begins waiting requests when workers are added, by a step or by a change', async () => {
  const hour = { kind: 'constant', mean: 3_600_000 } as const;
  const quick = [{ path: ['/quick'], latency: { kind: 'constant', mean: 1 } as const }];
  const practice = await start({ limit: WORKERS, latency: hour, latencies: quick, steps: [{ at: 500, limit: 2 }] });
  const waitFor = (count: number) =>
    eventually(
      () => practice.stats().inFlight,
      (inFlight) => inFlight === count,
    );
  const stuck = [send(practice.url, '/')];
  await waitFor(1);
  expect((await send(practice.url, '/quick')).status).toBe(200);
  stuck.push(send(practice.url, '/'));
  await waitFor(2);
  const waiting = send(practice.url, '/quick');
  await waitFor(3);
  practice.configure({ limit: { ...WORKERS, workers: 3 } });
  expect((await waiting).status).toBe(200);
  await practice.close();
  await Promise.allSettled(stuck);
});

test('works on a request whose client has disconnected', async () => {
  // Long enough for the client to leave before it ends, on a busy machine too.
  const practice = await start({ limit: WORKERS, latency: { kind: 'constant', mean: 1000 } });
  await askAndLeave(practice);
  const [took = 0] = await answerTimes(practice, 1);
  expect(took).toBeGreaterThan(999); // the rest of the first, and its own
  expect(practice.stats().answered).toEqual({ 200: 1, gone: 1 });
});
