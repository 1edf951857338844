/** The oracle over sockets, where there are several endpoints, tenants, lifetimes of keys, and clients that leave. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { refusingUrl } from '../support/http-upstream.ts';
import type { Ask } from '../support/oracle/ask.ts';
import { askFor, drawManner, traceIdOf } from '../support/oracle/ask.ts';
import { Bank } from '../support/oracle/bank.ts';
import type { Logged } from '../support/oracle/client-view.ts';
import { ClientView } from '../support/oracle/client-view.ts';
import type { Intent } from '../support/oracle/intent.ts';
import { drawIntents } from '../support/oracle/intent.ts';
import type { Told } from '../support/oracle/judge.ts';
import type { Concurrent, Topology } from '../support/oracle/topology.ts';
import { drawTopology, pickOf, yamlOf } from '../support/oracle/topology.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { startTidegate } from '../support/tidegate.ts';

/** Of each way to treat a key that is under way. */
const INTENTS = Number(process.env['TIDEGATE_ORACLE_TOPOLOGIES'] ?? 360);
const IN_A_TOPOLOGY = 60;
const AT_A_TIME = 6;

interface Run {
  readonly wrong: readonly string[];
  readonly told: readonly Told[];
}

test.each<Concurrent>(['wait', 'refuse', 'pass'])(
  'what each tenant is told of its write is true, at however many endpoints (concurrent: %s)',
  async (concurrent) => {
    const random = seededRandom(20_261_126);
    const runs: Run[] = [];
    for (let begun = 0; begun * IN_A_TOPOLOGY < INTENTS; begun += AT_A_TIME) {
      const topologies = Array.from({ length: AT_A_TIME }, (_, i) => drawTopology(concurrent, begun + i, random));
      runs.push(...(await Promise.all(topologies.map((each) => run(each, Math.floor(2 ** 32 * random()))))));
    }
    const counts: Partial<Record<Told, number>> = {};
    for (const told of runs.flatMap((each) => each.told)) counts[told] = (counts[told] ?? 0) + 1;
    for (const told of ['done', 'declined', 'unknown', 'not done', 'nothing'] as const) {
      expect(counts[told]).toBeGreaterThan(20);
    }
    const wrong = runs.flatMap((each) => each.wrong);
    expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
  },
  60_000 + 200 * INTENTS,
);

async function run(topology: Topology, seed: number): Promise<Run> {
  const random = seededRandom(seed);
  const asks = new Map<number, Ask>();
  const bank = new Bank(topology, random, asks);
  const urls = await bank.open();
  if (topology.hasDeadOne) urls.push(await refusingUrl());
  const gate = await startTidegate(yamlOf(topology, urls));
  const { ttl, sharesKeys } = topology;
  const isRemembered = ttl !== undefined || (urls.length > 1 && !sharesKeys);
  const told: Told[] = [];
  const wrong: string[] = [];

  const pursue = async (intent: Intent): Promise<void> => {
    const times = () => bank.times(intent);
    const view = new ClientView(intent, { times, logged: (ask) => loggedOf(gate, ask), ttl, isRemembered });
    const rounds = intent.key === undefined ? 1 : 1 + Math.floor(5 * random());
    for (let left = rounds; left > 0; left -= 1) {
      view.begin(performance.now());
      const count = intent.key === undefined || random() < 0.75 ? 1 : 2 + Math.floor(2 * random());
      const together = await Promise.all(Array.from({ length: count }, (_, i) => askAfter(i, intent)));
      view.judge(together, performance.now());
      told.push(...together.map((ask) => ask.told));
      await sleep(pauseAfter(topology, view, random));
    }
    const { method, name, story } = intent;
    for (const lie of view.wrong.slice(0, 1)) {
      wrong.push(`${lie}: ${method} ${name}: ${story.join('; ')}; at ${topology.name}`);
    }
  };
  /** @param place among those that are asked together: the first at once, the others then or soon */
  const askAfter = async (place: number, intent: Intent): Promise<Ask> => {
    if (place > 0 && random() < 0.6) await sleep(40 * random());
    const ask = makeAsk(intent);
    await askFor(gate.url, ask);
    return ask;
  };
  const makeAsk = (intent: Intent): Ask => {
    const ask: Ask = {
      number: 1 + asks.size,
      intent,
      token: pickOf(intent.tokens, random),
      manner: drawManner(random, topology.ttl),
      timesBefore: bank.times(intent),
      ...{ isOpen: false, hasLeft: false, hasBegun: false, told: 'nothing', says: undefined },
    };
    asks.set(ask.number, ask);
    return ask;
  };

  const intents = Array.from({ length: IN_A_TOPOLOGY }, (_, i) => drawIntents(topology, i, random));
  await Promise.all(
    intents.map(async (tenants) => {
      await sleep(1000 * random());
      await Promise.all(tenants.map(pursue));
    }),
  );
  return { wrong, told };
}

/** At once, soon, or about when the upstream forgets its key. */
function pauseAfter({ ttl }: Topology, { firstAskedAt = 0 }: ClientView, random: Random): number {
  const draw = random();
  if (draw < 0.3) return 0;
  if (draw < 0.8 || ttl === undefined) return 40 * random();
  return Math.max(0, firstAskedAt + ttl - 200 + 700 * random() - performance.now());
}

function loggedOf(gate: Tidegate, ask: Ask): Logged | undefined {
  const line = gate.requests().find(({ traceId }) => traceId === traceIdOf(ask.number));
  if (line === undefined) return undefined;
  const { status, attempts, cut, outcome } = line;
  const isWhole = cut !== true && outcome !== 'client_gone' && outcome !== 'unknown';
  return { status: Number(status), attempts: Number(attempts), isWhole };
}
