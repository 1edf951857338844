/** The oracle over sockets with several endpoints, tenants, key lifetimes, and clients that disconnect. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Random } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { refusingUrl } from '../../support/upstreams/http-upstream.ts';
import type { OracleRequest } from '../../support/oracle/oracle-request.ts';
import { sendOracleRequest, drawManner, traceIdOf } from '../../support/oracle/oracle-request.ts';
import { IdempotentUpstream } from '../../support/oracle/idempotent-upstream.ts';
import type { ProxyLogEntry } from '../../support/oracle/client-knowledge.ts';
import { ClientKnowledge } from '../../support/oracle/client-knowledge.ts';
import type { Intent } from '../../support/oracle/intent.ts';
import { drawIntents } from '../../support/oracle/intent.ts';
import type { ReportedOutcome } from '../../support/oracle/reported-outcome.ts';
import type { Concurrent, Topology } from '../../support/oracle/topology.ts';
import { drawTopology, pickOf, yamlOf } from '../../support/oracle/topology.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

/** For each mode of concurrent keys. */
const INTENTS = Number(process.env['TIDEGATE_ORACLE_TOPOLOGIES'] ?? 360);
const IN_A_TOPOLOGY = 60;
const AT_A_TIME = 6;

interface Run {
  readonly wrong: readonly string[];
  readonly outcomes: readonly ReportedOutcome[];
}

test.each<Concurrent>(['wait', 'refuse', 'pass'])(
  'reports the true outcome of its write to each tenant, with any number of endpoints (concurrent: %s)',
  async (concurrent) => {
    const random = seededRandom(20_261_126);
    const runs: Run[] = [];
    for (let begun = 0; begun * IN_A_TOPOLOGY < INTENTS; begun += AT_A_TIME) {
      const topologies = Array.from({ length: AT_A_TIME }, (_, i) => drawTopology(concurrent, begun + i, random));
      runs.push(...(await Promise.all(topologies.map((each) => run(each, Math.floor(2 ** 32 * random()))))));
    }
    const counts: Partial<Record<ReportedOutcome, number>> = {};
    for (const reported of runs.flatMap((each) => each.outcomes)) counts[reported] = (counts[reported] ?? 0) + 1;
    for (const reported of ['done', 'declined', 'unknown', 'not done', 'nothing'] as const) {
      expect(counts[reported]).toBeGreaterThan(20);
    }
    const wrong = runs.flatMap((each) => each.wrong);
    expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
  },
  60_000 + 200 * INTENTS,
);

async function run(topology: Topology, seed: number): Promise<Run> {
  const random = seededRandom(seed);
  const asks = new Map<number, OracleRequest>();
  const bank = new IdempotentUpstream(topology, random, asks);
  const urls = await bank.listen();
  if (topology.hasDeadOne) urls.push(await refusingUrl());
  const gate = await startTidegate(yamlOf(topology, urls));
  const { ttl, sharesKeys } = topology;
  const isRemembered = ttl !== undefined || (urls.length > 1 && !sharesKeys);
  const outcomes: ReportedOutcome[] = [];
  const wrong: string[] = [];

  const pursue = async (intent: Intent): Promise<void> => {
    const times = () => bank.times(intent);
    const view = new ClientKnowledge(intent, { times, logged: (ask) => loggedOf(gate, ask), ttl, isRemembered });
    const rounds = intent.key === undefined ? 1 : 1 + Math.floor(5 * random());
    for (let left = rounds; left > 0; left -= 1) {
      view.begin(performance.now());
      const count = intent.key === undefined || random() < 0.75 ? 1 : 2 + Math.floor(2 * random());
      const together = await Promise.all(Array.from({ length: count }, (_, i) => askAfter(i, intent)));
      view.judge(together, performance.now());
      outcomes.push(...together.map((ask) => ask.reported));
      await sleep(pauseAfter(topology, view, random));
    }
    const { method, name, history } = intent;
    for (const lie of view.wrong.slice(0, 1)) {
      wrong.push(`${lie}: ${method} ${name}: ${history.join('; ')}; at ${topology.name}`);
    }
  };
  /** @param place among concurrent requests: the first is sent at once, the others at once or soon */
  const askAfter = async (place: number, intent: Intent): Promise<OracleRequest> => {
    if (place > 0 && random() < 0.6) await sleep(40 * random());
    const ask = makeAsk(intent);
    await sendOracleRequest(gate.url, ask);
    return ask;
  };
  const makeAsk = (intent: Intent): OracleRequest => {
    const ask: OracleRequest = {
      number: 1 + asks.size,
      intent,
      token: pickOf(intent.tokens, random),
      manner: drawManner(random, topology.ttl),
      timesBefore: bank.times(intent),
      ...{
        isOpen: false,
        wasDeclined: false,
        hasLeft: false,
        hasBegun: false,
        reported: 'nothing',
        answeredName: undefined,
      },
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
  return { wrong, outcomes };
}

/** At once, soon, or about when the upstream forgets its key. */
function pauseAfter({ ttl }: Topology, { firstAskedAt = 0 }: ClientKnowledge, random: Random): number {
  const draw = random();
  if (draw < 0.3) return 0;
  if (draw < 0.8 || ttl === undefined) return 40 * random();
  return Math.max(0, firstAskedAt + ttl - 200 + 700 * random() - performance.now());
}

function loggedOf(gate: Tidegate, ask: OracleRequest): ProxyLogEntry | undefined {
  const line = gate.requests().find(({ trace_id: traceId }) => traceId === traceIdOf(ask.number));
  if (line === undefined) return undefined;
  const { status, attempts, cut, outcome } = line;
  const isWhole = cut !== true && outcome !== 'client_gone' && outcome !== 'unknown';
  return { status: Number(status), attempts: Number(attempts), isComplete: isWhole };
}
