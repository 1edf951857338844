// Clients in their own process, so that they share no event loop with the measured proxy. Started by measure.ts with a plan
// as its argument; sends one message, the measurement.

import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';
import type { Millis } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { Counted, Measurement } from './measurement.ts';
import { loadPlan } from './measurement.ts';

const PATH = '/v1/things';

const stats = z.object({
  elapsed: z.number(),
  received: z.number(),
  accepted: z.number(),
  rejected: z.number(),
  errors: z.number(),
});
type Stats = z.infer<typeof stats>;
const loggedWaits = z.array(z.object({ at: z.number(), wait: z.number() }));

interface Answered {
  readonly at: Millis;
  /** Latency since the request was due, including waiting in this process. */
  readonly took: Millis;
  /** 0 without a response. */
  readonly status: number;
}

const plan = loadPlan.parse(JSON.parse(process.argv[2] ?? ''));
const dispatcher = new Agent({ pipelining: 1, headersTimeout: 2 * plan.deadline, bodyTimeout: 2 * plan.deadline });
const random = seededRandom(plan.seed);
const answers: Answered[] = [];
const late: Millis[] = [];
const waiting = new Set<Promise<void>>();
let offered = 0;

await call(`${plan.upstream}/practice/reset`, 'POST');
const start = performance.now();
const warm = start + plan.warmup;
const end = warm + plan.span;
const [cold, whole] = await Promise.all([statsAt(warm), statsAt(end), offer()]);
await Promise.all(waiting);
const service = plan.isService ? await waitsBetween(cold.elapsed, whole.elapsed) : undefined;
await dispatcher.close();
process.send?.({ ...measured(cold, whole), ...(service && { service }) });

/** Poisson arrivals at absolute times: a late timer sends all due requests, and does not delay later ones. */
async function offer(): Promise<void> {
  for (let at = start + gap(); at < end; at += gap()) {
    for (let left = at - performance.now(); left > 0; left = at - performance.now()) await sleep(left);
    late.push(performance.now() - at);
    if (at >= warm) offered += 1;
    const sent = send(at, `client-${Math.floor(random() * plan.clients)}`);
    waiting.add(sent);
    void sent.then(() => waiting.delete(sent));
  }
}

function gap(): Millis {
  return (1000 / plan.rate) * Math.log(1 / (1 - random()));
}

async function send(dueAt: Millis, client: string): Promise<void> {
  let status = 0;
  try {
    const url = plan.urls.length === 1 ? plan.urls[0] : plan.urls[Math.floor(random() * plan.urls.length)];
    const headers = { 'x-api-key': client };
    const answer = await request(`${url}${PATH}`, { dispatcher, headers, signal: leaveAt(dueAt + plan.deadline) });
    await answer.body.dump();
    status = answer.statusCode;
  } catch {
    // Counted as a failure.
  }
  const at = performance.now();
  answers.push({ at, took: at - dueAt, status });
}

/** Disconnects the client of a service then. */
function leaveAt(time: Millis): AbortSignal | null {
  return plan.isService ? AbortSignal.timeout(Math.max(0, Math.ceil(time - performance.now()))) : null;
}

/** The requests that the service has worked on between two times of its clock, and how long they waited for it. */
async function waitsBetween(from: Millis, to: Millis): Promise<Measurement['service']> {
  const logged = loggedWaits.parse(await call(`${plan.upstream}/practice/waits`, 'GET'));
  const waits = logged.filter(({ at }) => at >= from && at < to).map(({ wait }) => wait);
  return { worked: waits.length, wait: { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) } };
}

async function statsAt(time: Millis): Promise<Stats> {
  await sleep(time - performance.now());
  return stats.parse(await call(`${plan.upstream}/practice/stats`, 'GET'));
}

async function call(url: string, method: 'GET' | 'POST'): Promise<unknown> {
  const { body } = await request(url, { method, dispatcher });
  return body.json();
}

function measured(before: Stats, after: Stats): Measurement {
  const counted = answers.filter(({ at }) => at >= warm && at < end);
  const took = counted.filter(isSuccess).map((answer) => answer.took);
  return {
    offered,
    counted: count(counted, minus(after, before)),
    cold: count(
      answers.filter(({ at }) => at < warm),
      before,
    ),
    statuses: Object.fromEntries(
      [...Map.groupBy(counted, ({ status }) => String(status))].map(([status, those]) => [status, those.length]),
    ),
    latency: { p50: quantile(took, 0.5), p99: quantile(took, 0.99) },
    lateness: quantile(late, 0.99),
  };
}

function count(ended: readonly Answered[], upstream: Stats): Counted {
  const successes = ended.filter(isSuccess).length;
  const refused = ended.filter(({ status }) => status === 429 || status === 503).length;
  return {
    successes,
    refused,
    failed: ended.length - successes - refused,
    sends: upstream.received,
    accepted: upstream.accepted,
    wasted: upstream.rejected + upstream.errors,
  };
}

function isSuccess({ status, took }: Answered): boolean {
  return status === 200 && took <= plan.deadline;
}

function minus(a: Stats, b: Stats): Stats {
  return {
    elapsed: a.elapsed - b.elapsed,
    received: a.received - b.received,
    accepted: a.accepted - b.accepted,
    rejected: a.rejected - b.rejected,
    errors: a.errors - b.errors,
  };
}

/** Returns the nearest-rank quantile; 0 for an empty list. */
function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? 0;
}
