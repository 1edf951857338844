/** Two hundred clients, a proxy in its own process and an upstream with a journal: checks what no fault may break. */
import { expect } from 'vitest';
import type { Millis } from '../../../src/core/scalars.ts';
import { atEnd } from '../at-end.ts';
import { makeCertificates } from '../certificates.ts';
import type { LoadClientResult } from '../clients/load-clients.ts';
import { LoadClients } from '../clients/load-clients.ts';
import { pause } from '../pause.ts';
import type { HeldResources } from './memory-probe.ts';
import type { LogLine, ProbedProcess } from './probed-process.ts';
import { startProbedProcess } from './probed-process.ts';
import type { Relay } from '../relay/relay.ts';
import { startRelay } from '../relay/relay.ts';
import type { PaymentFake } from '../upstreams/start-payment-fake.ts';
import { startPaymentFake } from '../upstreams/start-payment-fake.ts';
import { eventually } from './tidegate.ts';
import type { JournalEntry } from '../upstreams/payment-fake.ts';

const CLIENTS = 200;
/** With the upstream's latency this makes about 400 requests a second. */
const THINK_TIME: Millis = 450;
const SEED = 20261121;
const WARM_UP: Millis = 800;
const BEFORE: Millis = 1200;
const WINDOW: Millis = 1000;
/** Timeout for goodput to recover: the longest probe interval (6 s), rate growth (3 s), and as much again on a busy machine. */
const RECOVERY_TIMEOUT: Millis = 20_000;
/** The deadline of a request plus the delay that a busy machine may add. */
const DEADLINE: Millis = 4000;
const LATENESS: Millis = 4000;
/** The default. On a busy machine, requests are answered in time because others are shed. */
const SHEDDING = 'limits: {overload: {eventLoopDelay: 500ms}}\n';
/** Allowed memory growth in bytes, for compiled code and grown tables: 2.3 MB, after an outage of ten seconds and of twenty. */
const GROWTH = 3 * 1024 * 1024;

export interface FaultLoadParts {
  readonly paymentFake: PaymentFake;
  readonly relay: Relay;
}

export interface FaultLoadSystem extends FaultLoadParts {
  readonly gate: ProbedProcess;
  /** Results since the fault began. */
  readonly results: () => readonly LoadClientResult[];
}

export interface FaultLoadResult {
  /** Results from the beginning of the fault on. */
  readonly results: readonly LoadClientResult[];
  readonly journal: readonly JournalEntry[];
  /** Metrics at the end, when the proxy is idle. */
  readonly metrics: ReadonlyMap<string, number>;
}

export interface FaultLoadOptions {
  /** Settings of the upstream, in YAML's flow style. */
  readonly settings: string;
  /** Clients use HTTP/2. */
  readonly http2?: boolean;
  /** The upstream's URL; the relay's by default. */
  readonly url?: (parts: FaultLoadParts) => string;
}

/**
 * Loads a proxy, injects a fault, and checks what must hold for every fault: every request is answered once and
 * in time, charges are reported truly, goodput recovers, and all resources are released.
 * @param fault resolves when the fault is over
 */
export async function runFaultLoad(
  fault: (run: FaultLoadSystem) => Promise<void>,
  { settings, http2 = false, url = ({ relay }) => relay.url }: FaultLoadOptions,
): Promise<FaultLoadResult> {
  const paymentFake = await startPaymentFake();
  const relay = await startRelay(paymentFake.url, { seed: SEED });
  atEnd(() => relay.close());
  const lines: LogLine[] = [];
  const upstream = `{url: "${url({ paymentFake, relay })}", timeout: ${DEADLINE}ms, ${settings}}`;
  const shown = http2 ? showCertificate() : undefined;
  const gate = await startProbedProcess(`${SHEDDING}${shown?.listen ?? ''}upstreams: {pay: ${upstream}}`, (line) =>
    lines.push(line),
  );
  atEnd(() => gate.stop('SIGKILL'));
  const empty = await gate.heldResources();
  const clients = new LoadClients(gate.url, { clients: CLIENTS, thinkTime: THINK_TIME, seed: SEED, http2: shown });
  atEnd(() => clients.stop());

  clients.start();
  await pause(WARM_UP);
  await clients.stop();
  await waitUntilIdle(gate, clients);
  const afterWarmUp = await gate.heldResources();

  clients.start();
  await pause(THINK_TIME); // until all have sent one request
  const start = performance.now();
  await pause(BEFORE);
  const began = performance.now();
  const results = () => clients.results.filter(({ answeredAt }) => answeredAt > began);
  await fault({ paymentFake, relay, gate, results });
  await waitForGoodput(clients, 0.9 * clients.goodput(start, began));
  await clients.stop();

  const metrics = await waitUntilIdle(gate, clients);
  const requests = await eventually(
    () => lines.filter(({ msg }) => msg === 'request'),
    ({ length }) => length >= logged(clients.results).length,
  );
  expectAnswered(clients, requests, metrics);
  // Faults of clients and upstreams must not be logged as errors.
  expect(lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  const journal = paymentFake.journal();
  expectReportedTruly(clients.results, journal);
  await clients.close();
  await paymentFake.kill();
  await expectGivenBack(gate, empty, afterWarmUp);
  return { results: results(), journal, metrics };
}

/** Creates a certificate for the proxy's listener. Returns its YAML and the CA. */
function showCertificate(): { readonly listen: string; readonly ca: string } {
  const certificates = makeCertificates(30);
  atEnd(() => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
  return {
    listen: `listen: {address: 127.0.0.1:0, tls: ${tls}, http2: true}\n`,
    ca: certificates.read('ca.crt'),
  };
}

/** Counts the reasons of responses generated by the proxy. */
export function countReasons(results: readonly LoadClientResult[]): ReadonlyMap<string, number> {
  const reasons = results.flatMap(({ reason }) => (reason === undefined ? [] : [reason]));
  return new Map([...Map.groupBy(reasons, (reason) => reason)].map(([reason, those]) => [reason, those.length]));
}

/** Sums the series of a metric whose labels contain `label`. */
export function sum(metrics: ReadonlyMap<string, number>, name: string, label = ''): number {
  let total = 0;
  for (const [series, value] of metrics) if (series.startsWith(`${name}{`) && series.includes(label)) total += value;
  return total;
}

/** Resolves to the metrics when no requests are in flight. */
function waitUntilIdle(gate: ProbedProcess, clients: LoadClients): Promise<ReadonlyMap<string, number>> {
  return eventually(
    () => gate.metrics(),
    (metrics) =>
      metrics.get('tidegate_requests_in_flight{route="/"}') === 0 &&
      metrics.get('tidegate_queue_depth{upstream="pay"}') === 0 &&
      metrics.get('tidegate_replay_buffer_bytes') === 0 &&
      sum(metrics, 'tidegate_requests_total') >= clients.sent,
  );
}

/** Resolves when there were at least `enough` successes within a second. */
async function waitForGoodput(clients: LoadClients, enough: number): Promise<void> {
  await eventually(
    () => clients.goodput(performance.now() - WINDOW, performance.now()),
    (goodput) => goodput >= enough,
    RECOVERY_TIMEOUT,
  );
}

/** Expects one response for each request, in time and its own, and matching logs and metrics. */
function expectAnswered(
  { results, sent }: LoadClients,
  requests: readonly LogLine[],
  metrics: ReadonlyMap<string, number>,
): void {
  expect(results).toHaveLength(sent);
  expect(results.filter(({ status, foreign }) => status === 0 || foreign)).toEqual([]);
  expect(results.filter((each) => each.answeredAt - each.sentAt > DEADLINE + LATENESS)).toEqual([]);

  expect(sum(metrics, 'tidegate_requests_total')).toBe(sent);
  expect(new Set(requests.map(({ id }) => id)).size).toBe(logged(results).length);
  expect(countAnswers(requests)).toEqual(countAnswers(logged(results)));
  const unknown = results.filter((each) => each.unknown).length;
  expect(requests.filter(({ outcome }) => outcome === 'unknown')).toHaveLength(unknown);
  expect(sum(metrics, 'tidegate_requests_total', 'outcome="unknown"')).toBe(unknown);
}

/** The results of requests with a log line: those that are shed have none. */
function logged(results: readonly LoadClientResult[]): readonly LoadClientResult[] {
  return results.filter(({ reason }) => reason !== 'overloaded');
}

/** Counts responses by status, and truncated bodies. */
function countAnswers(answers: readonly (LoadClientResult | LogLine)[]): Readonly<Record<string, number>> {
  const names = answers.map(({ status, cut }) => `${String(status)}${cut === true ? ' cut' : ''}`).toSorted();
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, those]) => [name, those.length]));
}

/** Expects that successes were charged, definite failures were not, and nothing was charged twice. */
function expectReportedTruly(results: readonly LoadClientResult[], journal: readonly JournalEntry[]): void {
  const came = countBooked(journal, 'came');
  const charged = countBooked(journal, 'charged');
  expect(journal.filter(({ what }) => what === 'spoiled')).toEqual([]);
  const lies = results
    .filter(({ kind }) => kind !== 'get')
    .map((each) => ({ ...each, came: came.get(each.id) ?? 0, charged: charged.get(each.id) ?? 0 }))
    .filter((each) => {
      if (each.charged > 1 || (each.kind === 'unkeyed' && each.came > 1)) return true;
      if (each.status < 300) return each.charged !== 1 || each.unknown;
      return !each.unknown && each.charged > 0;
    });
  expect(lies).toEqual([]);
}

function countBooked(books: readonly JournalEntry[], what: JournalEntry['what']): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const booked of books) {
    if (booked.what === what) counts.set(booked.intent, (counts.get(booked.intent) ?? 0) + 1);
  }
  return counts;
}

/** Expects the idle proxy to hold its initial resources, apart from learned state and request records. */
async function expectGivenBack(gate: ProbedProcess, empty: HeldResources, warm: HeldResources): Promise<void> {
  const first = { handles: sorted(empty.handles), files: empty.files };
  await eventually(
    async () => {
      const { handles, files } = await gate.heldResources();
      return { now: { handles: sorted(handles), files }, first };
    },
    ({ now }) => JSON.stringify(now) === JSON.stringify(first),
  );
  const { bytes } = await gate.heldResources();
  const stories = (await gate.metrics()).get('tidegate_story_bytes') ?? 0;
  expect(bytes - stories - warm.bytes).toBeLessThan(GROWTH);
}

function sorted(counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).toSorted(([a], [b]) => a.localeCompare(b));
}
