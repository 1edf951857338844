/** A request that latency delays or refuses is explained alike by one process, by workers and by replicas. */
import { expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import type { ExplanationStep } from '../../../src/telemetry/explanations/build-explanation.ts';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { stateAt } from '../../support/proxy/replicas.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

const PATIENCE = 300_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 120_000;
/** The service works on so many requests at a time, each for so many milliseconds. */
const AT_A_TIME = 4;
const SERVICE_TIME = 50;
/** Requests a second, twice what it can serve. */
const RATE = (2 * 1000 * AT_A_TIME) / SERVICE_TIME;

type Proxy = Pick<Tidegate, 'url' | 'adminUrl' | 'log'>;

/** Returns a function that reads the decisions on requests that waited, or were refused, since the last call. */
function decisionReader(proxies: readonly Proxy[]): () => Promise<readonly ExplanationStep[]> {
  const read = new Set<unknown>();
  return async () => {
    const decisions: ExplanationStep[] = [];
    for (const proxy of proxies) {
      for (const { msg, id, outcome, queuedMs } of proxy.log()) {
        if (msg !== 'request' || read.has(id) || (outcome !== 'refused' && Number(queuedMs) === 0)) continue;
        read.add(id);
        const { steps } = await fetchExplanation(proxy, String(id));
        decisions.push(...steps.filter(({ what }) => what === 'decided'));
      }
    }
    return decisions;
  };
}

async function metricsOf({ adminUrl }: Proxy, series: string): Promise<number[]> {
  const exposition = await (await fetch(`${adminUrl}/metrics`)).text();
  const lines = exposition.split('\n').filter((line) => line.startsWith(`${series} `));
  return lines.map((line) => Number(line.slice(series.length + 1)));
}

/** Whether about as many requests are without a response as may be. */
function isAtLimit({ places, unanswered }: ExplanationStep): boolean {
  return Math.abs(Number(unanswered) - Number(places)) <= 0.25 * Number(places);
}

/** Whether requests that other processes sent are counted as well. */
function countsOthers({ inFlight, unanswered }: ExplanationStep): boolean {
  return Number(unanswered) > Number(inFlight);
}

test.each<[string, (api: string) => Promise<readonly Proxy[]>]>([
  ['one process', async (api) => [await startTidegate(api)]],
  ['workers', async (api) => [await startWorkers(`workers: 2\n${api}`)]],
  [
    'replicas',
    async (api) => {
      const { url } = await startRedis();
      return Promise.all([1, 2].map(() => startTidegate(`${stateAt(url)}${api}`)));
    },
  ],
])(
  'requests that wait because of latency say so, in %s',
  async (kind, start) => {
    const upstream = await startUpstream({
      limit: { kind: 'workers', workers: AT_A_TIME },
      latency: { kind: 'constant', mean: SERVICE_TIME },
    });
    const settings = 'queue: {maxWait: 300ms}, rateLimit: {learnFromLatency: true}';
    const proxies = await start(`upstreams: {api: {url: "${upstream.url}", ${settings}}}`);
    for (const { url } of proxies) {
      const traffic = startTraffic({ target: url, clients: [{ name: 'all', rate: RATE / proxies.length }] });
      onTestFinished(() => traffic.stop(0));
    }
    const readDecisions = decisionReader(proxies);
    const decisions: ExplanationStep[] = [];
    const find = (cause: string, decision: string): readonly ExplanationStep[] =>
      decisions.filter((each) => each['placesCause'] === cause && each['decision'] === decision);
    const isShown = (each: ExplanationStep): boolean =>
      isAtLimit(each) && (kind === 'one process' || countsOthers(each));
    await eventually(
      async () => {
        decisions.push(...(await readDecisions()));
        return decisions.slice(-5).map(({ text }) => text);
      },
      () =>
        find('latency_test', 'queued').length > 0 &&
        find('latency', 'queued').some(isShown) &&
        find('latency', 'refused').some(isShown),
      WITHIN,
      100,
    );
    expect(find('rejections', 'queued')).toEqual([]);
    expect(find('rejections', 'refused')).toEqual([]);
    for (const { placesCause, places, unanswered, text } of decisions) {
      if (typeof placesCause !== 'string') continue;
      const reason = placesCause === 'latency' ? 'because more would' : 'to see whether more would';
      const count = `${String(unanswered)} of at most ${String(places)} requests wait for a response`;
      expect(text).toContain(`${count}, ${reason} only be answered later`);
    }
    for (const proxy of proxies) {
      const [places] = await eventually(
        () => metricsOf(proxy, 'tidegate_ratelimit_places{upstream="api",scope="upstream"}'),
        ({ length }) => length === 1,
      );
      expect(places).toBeGreaterThan(0);
    }
    const cuts = 'tidegate_ratelimit_cuts_total{upstream="api",cause="latency"}';
    const found = await Promise.all(proxies.map((proxy) => metricsOf(proxy, cuts)));
    expect(found.flat().reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
  },
  PATIENCE,
);
