/** Two hundred clients, a proxy in a process of its own and an upstream that keeps books: what a fault may not harm. */
import { expect, onTestFinished } from 'vitest';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { makeCertificates } from './certificates.ts';
import type { Told } from './crowd.ts';
import { Crowd } from './crowd.ts';
import { pause } from './pause.ts';
import type { Held } from './probe.ts';
import type { LogLine, Probed } from './probed.ts';
import { startProbed } from './probed.ts';
import type { Relay } from './relay.ts';
import { startRelay } from './relay.ts';
import type { Till } from './start-till.ts';
import { startTill } from './start-till.ts';
import { eventually } from './tidegate.ts';
import type { Booked } from './till.ts';

const CLIENTS = 200;
/** Together with the upstream's work this makes some 400 requests a second. */
const REST: Millis = 450;
const SEED = 20261121;
const WARM_UP: Millis = 800;
const BEFORE: Millis = 1200;
const WINDOW: Millis = 1000;
/** Until goodput is back: the longest wait for a probe (6 s), the steps of the rate (3 s), and as much again on a loaded machine. */
const PATIENCE: Millis = 20_000;
/** The deadline of a request, and what a loaded machine may add to it. */
const DEADLINE: Millis = 4000;
const LATENESS: Millis = 4000;
/** What a run may leave behind: code that was compiled, tables that have grown once. */
const GROWTH = 2 * 1024 * 1024;

export interface Parts {
  readonly till: Till;
  readonly relay: Relay;
}

export interface UnderLoad extends Parts {
  readonly gate: Probed;
}

export interface Endured {
  /** What was answered from the beginning of the fault on. */
  readonly told: readonly Told[];
  readonly books: readonly Booked[];
  /** At the end, when all is quiet. */
  readonly metrics: ReadonlyMap<string, number>;
}

export interface EndureOptions {
  /** Of the upstream, in YAML's flow style. */
  readonly settings: string;
  /** Clients come over HTTP/2. */
  readonly http2?: boolean;
  /** Of the upstream: the relay's unless given. */
  readonly url?: (parts: Parts) => string;
}

/**
 * Puts load on a proxy, has the fault come and go, and checks what holds of any fault: every request is answered once and
 * in time, money is told of as it is, goodput returns, and all that was taken is given back.
 * @param fault resolves when it is over
 */
export async function endure(
  fault: (run: UnderLoad) => Promise<void>,
  { settings, http2 = false, url = ({ relay }) => relay.url }: EndureOptions,
): Promise<Endured> {
  const till = await startTill();
  const relay = await startRelay(till.url, { seed: SEED });
  onTestFinished(() => relay.close());
  const lines: LogLine[] = [];
  const upstream = `{url: "${url({ till, relay })}", timeout: ${DEADLINE}ms, ${settings}}`;
  const shown = http2 ? showCertificate() : undefined;
  const gate = await startProbed(`${shown?.listen ?? ''}upstreams: {pay: ${upstream}}`, (line) => lines.push(line));
  onTestFinished(() => gate.stop('SIGKILL'));
  const empty = await gate.held();
  const crowd = new Crowd(gate.url, { clients: CLIENTS, rest: REST, seed: SEED, http2: shown });
  onTestFinished(() => crowd.stop());

  crowd.start();
  await pause(WARM_UP);
  await crowd.stop();
  await calm(gate, crowd);
  const warm = await gate.held();

  crowd.start();
  await pause(REST); // until all have asked once
  const start = performance.now();
  await pause(BEFORE);
  const began = performance.now();
  await fault({ till, relay, gate });
  await recover(crowd, 0.9 * crowd.goodput(start, began));
  await crowd.stop();

  const metrics = await calm(gate, crowd);
  const requests = await eventually(
    () => lines.filter(({ msg }) => msg === 'request'),
    ({ length }) => length >= crowd.asked,
  );
  expectAnswered(crowd, requests, metrics);
  // A fault of others is no fault of this program.
  expect(lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  const books = till.books();
  expectHonest(crowd.told, books);
  await crowd.leave();
  await till.kill();
  await expectGivenBack(gate, empty, warm);
  return { told: crowd.told.filter(({ at }) => at > began), books, metrics };
}

/** What the proxy shows to clients, in YAML, and who vouches for that. */
function showCertificate(): { readonly listen: string; readonly ca: string } {
  const certificates = makeCertificates();
  onTestFinished(() => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
  return {
    listen: `listen: {address: 127.0.0.1:0, tls: ${tls}, http2: true}\n`,
    ca: certificates.read('ca.crt'),
  };
}

/** How often the proxy gave each reason for an answer of its own. */
export function countReasons(told: readonly Told[]): ReadonlyMap<string, number> {
  const reasons = told.flatMap(({ reason }) => (reason === undefined ? [] : [reason]));
  return new Map([...Map.groupBy(reasons, (reason) => reason)].map(([reason, those]) => [reason, those.length]));
}

/** All series of a metric whose labels contain this. */
export function sum(metrics: ReadonlyMap<string, number>, name: string, label = ''): number {
  let total = 0;
  for (const [series, value] of metrics) if (series.startsWith(`${name}{`) && series.includes(label)) total += value;
  return total;
}

/** Resolves with the metrics when nothing is on its way any more. */
function calm(gate: Probed, crowd: Crowd): Promise<ReadonlyMap<string, number>> {
  return eventually(
    () => gate.metrics(),
    (metrics) =>
      metrics.get('tidegate_requests_in_flight{route="/"}') === 0 &&
      metrics.get('tidegate_queue_depth{upstream="pay"}') === 0 &&
      metrics.get('tidegate_replay_buffer_bytes') === 0 &&
      sum(metrics, 'tidegate_requests_total') >= crowd.asked,
    10_000,
  );
}

/** Resolves when a second has had so many successes. */
async function recover(crowd: Crowd, enough: number): Promise<void> {
  await eventually(
    () => crowd.goodput(performance.now() - WINDOW, performance.now()),
    (goodput) => goodput >= enough,
    PATIENCE,
  );
}

/** Once, in time, each with its own; and the proxy's own accounts say the same. */
function expectAnswered(
  { told, asked }: Crowd,
  requests: readonly LogLine[],
  metrics: ReadonlyMap<string, number>,
): void {
  expect(told).toHaveLength(asked);
  expect(told.filter(({ status, foreign }) => status === 0 || foreign)).toEqual([]);
  expect(told.filter((each) => each.at - each.asked > DEADLINE + LATENESS)).toEqual([]);

  expect(sum(metrics, 'tidegate_requests_total')).toBe(asked);
  expect(new Set(requests.map(({ id }) => id)).size).toBe(asked);
  expect(countAnswers(requests)).toEqual(countAnswers(told));
  const unknown = told.filter((each) => each.unknown).length;
  expect(requests.filter(({ outcome }) => outcome === 'unknown')).toHaveLength(unknown);
  expect(sum(metrics, 'tidegate_requests_total', 'outcome="unknown"')).toBe(unknown);
}

/** How often there was each status, and how often its body was cut. */
function countAnswers(answers: readonly (Told | LogLine)[]): Readonly<Record<string, number>> {
  const names = answers.map(({ status, cut }) => `${String(status)}${cut === true ? ' cut' : ''}`).toSorted();
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, those]) => [name, those.length]));
}

/** Nobody is told that nothing happened, or that all is well, when the books say otherwise; nobody is charged twice. */
function expectHonest(told: readonly Told[], books: readonly Booked[]): void {
  const came = countBooked(books, 'came');
  const charged = countBooked(books, 'charged');
  expect(books.filter(({ what }) => what === 'spoiled')).toEqual([]);
  const lies = told
    .filter(({ kind }) => kind !== 'get')
    .map((each) => ({ ...each, came: came.get(each.id) ?? 0, charged: charged.get(each.id) ?? 0 }))
    .filter((each) => {
      if (each.charged > 1 || (each.kind === 'unkeyed' && each.came > 1)) return true;
      if (each.status < 300) return each.charged !== 1 || each.unknown;
      return !each.unknown && each.charged > 0;
    });
  expect(lies).toEqual([]);
}

function countBooked(books: readonly Booked[], what: Booked['what']): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const booked of books) {
    if (booked.what === what) counts.set(booked.intent, (counts.get(booked.intent) ?? 0) + 1);
  }
  return counts;
}

/** With its clients gone and its upstream dead it holds what it held at first, but for what it has learned, and the stories of requests. */
async function expectGivenBack(gate: Probed, empty: Held, warm: Held): Promise<void> {
  const first = { handles: sorted(empty.handles), files: empty.files };
  await eventually(
    async () => {
      const { handles, files } = await gate.held();
      return { now: { handles: sorted(handles), files }, first };
    },
    ({ now }) => JSON.stringify(now) === JSON.stringify(first),
    10_000,
  );
  const { bytes } = await gate.held();
  const stories = (await gate.metrics()).get('tidegate_story_bytes') ?? 0;
  expect(bytes - stories - warm.bytes).toBeLessThan(GROWTH);
}

function sorted(counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).toSorted(([a], [b]) => a.localeCompare(b));
}
