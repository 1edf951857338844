/** Reloads that change or remove the limits at which requests wait: in one process, several workers and replicas. */
import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { stateAt } from '../../support/proxy/replicas.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const TOPOLOGIES = ['one process', 'two workers', 'two replicas'] as const;
type Topology = (typeof TOPOLOGIES)[number];

/** The limits of an upstream before and after the reload. */
interface LimitChange {
  readonly before: string;
  readonly after: string;
  /** The name of the upstream after the reload, if it changes. */
  readonly renamed?: string;
  /** The limit where requests wait stays: a client's new requests follow those that it has there. */
  readonly keepsOrder?: boolean;
}

const own = (rate: string, more = ''): string => `rateLimit: {maxRate: ${rate}, minRate: 0.01/s${more}}`;
const nested = (rate: string, more = '', name = 'e'): string =>
  `limits: [{name: ${name}, match: {path: "/*/p"}, maxRate: ${rate}, minRate: 0.01/s${more}}]`;
const FREE = '1000/s';

/** @param rate of the limits at which requests wait */
function changes(rate: string): Readonly<Record<string, LimitChange>> {
  return {
    'limit-removed': { before: nested(rate), after: own(FREE) },
    'limit-removed-of-clients': { before: nested(rate, ', scope: client'), after: own(FREE) },
    'limit-renamed': { before: nested(rate), after: nested(FREE, '', 'other') },
    'to-clients': { before: own(rate), after: own(rate, ', scope: client') },
    'to-clients-around-a-limit': {
      before: `${own(rate)}, ${nested(FREE)}`,
      after: `${own(rate, ', scope: client')}, ${nested(FREE)}`,
      keepsOrder: true,
    },
    'limit-to-clients': { before: nested(rate), after: nested(rate, ', scope: client') },
    'upstream-renamed': { before: own(rate), after: own(FREE), renamed: 'upstream-named-otherwise' },
  };
}

/** Changes that apply to the requests that wait, too. */
function otherChanges(rate: string): Readonly<Record<string, LimitChange>> {
  return {
    // Not the same low rate twice: replicas seldom have a token of each in time.
    'limit-added': { before: own(rate), after: `${own('4/s')}, ${nested('40/s')}` },
    'to-all': { before: own(rate, ', scope: client'), after: own('4/s') },
    'limit-to-all': { before: nested(rate, ', scope: client'), after: nested('4/s') },
    raised: { before: own(rate), after: own('40/s') },
    lowered: { before: own(rate), after: own('3/s') },
    'limit-raised': { before: nested(rate), after: nested('40/s') },
    'limit-lowered': { before: nested(rate), after: nested('3/s') },
  };
}

interface RunningGates {
  readonly urls: readonly string[];
  readonly reload: (yaml: string) => Promise<void>;
  /** Of each upstream, the sum over all processes. */
  readonly queueDepths: (upstreams: readonly string[]) => Promise<number[]>;
}

async function start(topology: Topology, yaml: string): Promise<RunningGates> {
  if (topology === 'two workers') {
    const withWorkers = (text: string): string => `workers: 2\n${text}`;
    const gate = await startReloadable(withWorkers(yaml));
    return {
      urls: [gate.url],
      reload: async (next) => {
        const before = gate.reloads();
        gate.rewrite(withWorkers(next));
        await eventually(gate.reloads, (count) => count === before + 1);
      },
      queueDepths: (upstreams) => readDepths([gate.adminUrl], upstreams),
    };
  }
  const state = topology === 'one process' ? '' : stateAt((await startRedis()).url);
  const gates = [await startTidegate(`${state}${yaml}`)];
  if (topology === 'two replicas') gates.push(await startTidegate(`${state}${yaml}`));
  return {
    urls: gates.map(({ url }) => url),
    reload: async (next) => {
      for (const gate of gates) expect((await gate.rewrite(`${state}${next}`)).kind).toBe('applied');
    },
    queueDepths: (upstreams) =>
      readDepths(
        gates.map(({ adminUrl }) => String(adminUrl)),
        upstreams,
      ),
  };
}

async function readDepths(adminUrls: readonly string[], upstreams: readonly string[]): Promise<number[]> {
  const expositions = await Promise.all(adminUrls.map(async (url) => (await fetch(`${url}/metrics`)).text()));
  return upstreams.map((upstream) => {
    const series = `tidegate_queue_depth{upstream="${upstream}"} `;
    const lines = expositions.flatMap((text) => text.split('\n').filter((line) => line.startsWith(series)));
    return lines.reduce((sum, line) => sum + Number(line.slice(series.length)), 0);
  });
}

/** One upstream and one route for each change, all at the same server. */
function configure(
  url: string,
  table: Readonly<Record<string, LimitChange>>,
  when: 'before' | 'after',
  maxWait = '1h',
): string {
  const all = Object.entries(table).map(([change, each]) => {
    const name = when === 'after' ? (each.renamed ?? change) : change;
    const upstream = `${name}: {url: "${url}", timeout: 2h, queue: {maxWait: ${maxWait}}, ${each[when]}}`;
    return { upstream, route: `{path: /${change}, upstream: ${name}}` };
  });
  const upstreams = all.map(({ upstream }) => upstream).join(', ');
  return `clients: {key: [header:x-api-key, ip]}\nupstreams: {${upstreams}}\nroutes: [${all.map(({ route }) => route).join(', ')}]\n`;
}

/** Only a request that is never served takes as long. */
const PATIENCE = 40_000;

const WAITING_CLIENTS = ['a', 'b', 'c', 'd'];
const FRESH_CLIENTS = ['e', 'f', 'g', 'h'];

/** Starts a gate, and sends requests of four clients. Resolves when they wait at the limits. */
async function startWaiting(topology: Topology, table: Readonly<Record<string, LimitChange>>) {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gates = await start(topology, configure(upstream.url, table, 'before'));
  const leaving = new AbortController();
  let sent = 0;
  const ask = (change: string, client: string, signal = AbortSignal.timeout(PATIENCE)): Promise<string> => {
    const url = gates.urls[(sent += 1) % gates.urls.length] ?? '';
    const response = send(url, `/${change}/p`, { headers: ['x-api-key', client], signal });
    return response.then(({ status, body }) => `${status} ${body.toString()}`.trim(), String);
  };
  const askAll = (clients: (change: string) => readonly string[], signal?: AbortSignal) =>
    Object.fromEntries(
      Object.keys(table).map((change) => [change, clients(change).map((client) => ask(change, client, signal))]),
    );
  const depths = () => gates.queueDepths(Object.keys(table));
  const waiting = askAll(() => [...WAITING_CLIENTS, ...WAITING_CLIENTS, ...WAITING_CLIENTS], leaving.signal);
  await eventually(
    async () => [...(await depths()), upstream.hits.length].reduce((sum, count) => sum + count),
    (arrived) => arrived === sent,
  );
  return { gates, waiting, askAll, depths, leave: () => leaving.abort(), url: upstream.url };
}

async function outcomesOf(requests: Readonly<Record<string, readonly Promise<string>[]>>) {
  const all: Record<string, readonly string[]> = {};
  for (const [change, each] of Object.entries(requests)) all[change] = [...new Set(await Promise.all(each))];
  return all;
}

const allServed = (table: Readonly<Record<string, LimitChange>>) =>
  Object.fromEntries(Object.keys(table).map((change) => [change, ['200']]));

const SLOW = '0.02/s';

test.each(TOPOLOGIES)('serves all requests that wait while a reload changes their limits, in %s', async (topology) => {
  const table = { ...changes(SLOW), ...otherChanges(SLOW) };
  const { gates, waiting, askAll, depths, url } = await startWaiting(topology, table);
  expect((await depths()).filter((depth) => depth === 0)).toEqual([]);
  // They are served from now on, but not before the next reload.
  const fast = { ...changes('4/s'), ...otherChanges('4/s') };
  await gates.reload(configure(url, fast, 'before'));
  await gates.reload(configure(url, fast, 'after'));
  const fresh = askAll(() => [...WAITING_CLIENTS, ...FRESH_CLIENTS]);
  expect(await outcomesOf(waiting)).toEqual(allServed(table));
  expect(await outcomesOf(fresh)).toEqual(allServed(table));
});

test.each(TOPOLOGIES)(
  'serves a request at an unused new limit while others wait at the old one, in %s',
  async (topology) => {
    const table = changes(SLOW);
    const { gates, waiting, askAll, depths, leave, url } = await startWaiting(topology, table);
    await gates.reload(configure(url, table, 'after', '20s'));
    const fresh = askAll((change) => [
      ...FRESH_CLIENTS,
      ...(table[change]?.keepsOrder === true ? [] : WAITING_CLIENTS),
    ]);
    expect(await outcomesOf(fresh)).toEqual(allServed(table));
    expect((await depths()).filter((depth) => depth === 0)).toEqual([]);
    leave();
    await outcomesOf(waiting);
  },
);
