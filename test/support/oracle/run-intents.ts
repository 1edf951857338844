/** Runs random clients against a ledger in virtual time, and judges every outcome reported to a client at once. */
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { fixedDelay, RETRY_ALL, retryPolicy, routePolicy } from '../core/policy-builders.ts';
import { World } from '../core/world.ts';
import type { ReportedOutcome } from './reported-outcome.ts';
import { contradiction } from './reported-outcome.ts';
import type { OracleOptions, OracleScene, SimulatedIntent } from './simulated-request.ts';
import { SimulatedRequest, TTL } from './simulated-request.ts';
import { UpstreamLedger } from './upstream-ledger.ts';

const METHODS = ['POST', 'POST', 'POST', 'PATCH', 'PUT', 'DELETE'];

export interface OracleRun {
  /** Each contradiction, with the history of its intent. */
  readonly contradictions: readonly string[];
  readonly reported: Readonly<Partial<Record<ReportedOutcome, number>>>;
}

export function runIntents(options: OracleOptions): OracleRun {
  const random = seededRandom(options.seed);
  const upstream = { queue: { maxWait: 200, maxDepth: 50 }, budget: { ratio: 1, burst: 1000 } };
  const world = new World({ seed: options.seed + 1, upstream });
  const ledger = new UpstreamLedger(options.hasTtl ? TTL : Number.POSITIVE_INFINITY, random);
  const retry = retryPolicy({
    retryOn: { ...RETRY_ALL, lock: random() < 0.5 },
    attempts: 3,
    backOff: fixedDelay(40),
    minAttemptTime: 50,
  });
  const plan = routePolicy({ timeout: 1500, perTryTimeout: 300, claims: true, retry });
  const contradictions: string[] = [];
  const counts: Partial<Record<ReportedOutcome, number>> = {};

  const judge = (intent: SimulatedIntent, reported: ReportedOutcome, isOwnOpen: boolean): void => {
    counts[reported] = (counts[reported] ?? 0) + 1;
    intent.history.push(`${Math.round(world.now)}: ${reported}`);
    const isOpen = isOwnOpen || (intent.isOpen && !intent.isSettled) || intent.underWay > 0;
    const wrong = contradiction(reported, { times: ledger.times(intent.name), isOpen, isKnown: intent.answers > 0 });
    if (wrong === undefined) return;
    contradictions.push(`${intent.name}, ${intent.method}: ${wrong}: ${intent.history.join('; ')}`);
  };
  const scene: OracleScene = { world, keys: new KeyRegistry(), ledger, random, plan, options, judge };

  for (let number = 0; number < options.intents; number += 1) scheduleIntent(scene, number);
  world.runUntil(200_000);
  return { contradictions, reported: counts };
}

/** Schedules an intent's requests: at the same time, soon after, or once the upstream has forgotten the key. */
function scheduleIntent(scene: OracleScene, number: number): void {
  const { world, random } = scene;
  const intent: SimulatedIntent = {
    name: `intent ${number}`,
    method: METHODS[Math.floor(METHODS.length * random())] ?? 'POST',
    key: `key ${number}`,
    history: [],
    credential: random() < 0.5 ? 1 + number : undefined,
    ...{ underWay: 0, isOpen: false, answers: 0, isSettled: false },
  };
  let at = 100_000 * random();
  for (let tries = 1 + Math.floor(5 * random()); tries > 0; tries -= 1) {
    world.at(at, () => new SimulatedRequest(scene, intent).start());
    at += random() < 0.2 ? 20 * random() : random() < 0.7 ? 600 * random() : 2 * TTL * random();
  }
}
