/** Runs random clients against a ledger in virtual time, and judges every outcome reported to a client at once. */
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { fixedDelay, RETRY_ALL, retryPolicy, routePolicy } from '../core/policy-builders.ts';
import { World } from '../core/world.ts';
import type { ReportedOutcome } from './reported-outcome.ts';
import { contradiction } from './reported-outcome.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { LEASE } from './simulated-key-store.ts';
import type { OracleOptions, OracleScene, OwnKnowledge, SimulatedIntent } from './simulated-request.ts';
import { SimulatedRequest, TTL } from './simulated-request.ts';
import { MAX_DELAY, SimulatedProcesses } from './simulated-processes.ts';
import { UpstreamLedger } from './upstream-ledger.ts';

const NEVER = Number.NEGATIVE_INFINITY;

/** Of processes, in a run. */
const KILLS = 60;

/** How often the store of replicas loses what it stored last, in every other run, and of how much time at most. */
const LOSSES = 10;
const LOST_TIME = 2000;

/** How often the store of replicas does not respond, and for how long at most. */
const OUTAGES = 40;
const OUTAGE_LASTS = 1000;

/** After a lost response of the store, more than is open may be reported as unknown for so long. */
const LOSS_LASTS = 500;

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
  /** A process learns so late at most what another one does: a replica by a change, which may follow another, and a read. */
  const lag = { 'one process': 0, 'three replicas': 6 * MAX_DELAY }[options.topology as string] ?? MAX_DELAY;
  const counts: Partial<Record<ReportedOutcome, number>> = {};

  const judge: OracleScene['judge'] = (intent, reported, own) => {
    counts[reported] = (counts[reported] ?? 0) + 1;
    intent.history.push(`${Math.round(world.now)}: ${reported}`);
    const reportedAt = world.now;
    const name = { upstream: 'up', name: `${intent.method} ${intent.key}` };
    const losses = processes.keyStore?.lossesOf(name) ?? [];
    const lostAt = losses.at(-1);
    const lateAt = processes.keyStore?.lateAt(name);
    const isArriving = intent.arriving > 0 && intent.arriving === intent.answers;
    const isOpenNow = (): boolean => (intent.isOpen && !intent.isSettled) || intent.underWay > 0 || isArriving;
    const isStoreLost = reportedAt - processes.lastLossAt < LOSS_LASTS;
    // A change that a process had given up may be an attempt, for all that others know.
    const isOpenByFault = isStoreLost || lateAt !== undefined;
    const isOpen = own.isOpen || isOpenNow() || reportedAt - intent.lastOpenAt < 2 * lag || isOpenByFault;
    // Another process may have done it since this report was decided.
    const isDoneMeanwhile = reported === 'not done' && ledger.firstSentAt(intent.name) > reportedAt - lag;
    // Each loss may cost one more execution.
    const times = isDoneMeanwhile
      ? 0
      : Math.max(Math.min(1, ledger.times(intent.name)), ledger.times(intent.name) - losses.length);
    const isKnown = intent.answers > 0 || reportedAt - intent.lastCutAt < (isStoreLost ? LOSS_LASTS : 2 * lag);
    // Others take a request for ended when its lease ends.
    const lastUsedAt = Math.max(intent.lastClaimAt, lostAt ?? NEVER, lateAt ?? NEVER);
    const isInUse = intent.claims > 0 || isStoreLost || reportedAt - lastUsedAt < LEASE + 2 * lag;
    const wrong = contradiction(reported, { times, isOpen, isKnown, isInUse });
    if (wrong === undefined || (times <= 1 && !isCertainAfter(lostAt, reported, own))) return;
    const text = `${intent.name}, ${intent.method}: ${wrong}: ${intent.history.join('; ')}`;
    world.at(reportedAt + lag, () => {
      const wasOpen = reported === 'unknown' && (isOpenNow() || intent.lastOpenAt > reportedAt);
      if (lag === 0 || !wasOpen) contradictions.push(text);
    });
  };
  const processes = new SimulatedProcesses(world, random, options.topology);
  const scene: OracleScene = { world, processes, ledger, random, plan, options, judge };

  for (let number = 0; number < options.intents; number += 1) scheduleIntent(scene, number);
  if (options.topology !== 'one process') {
    for (let i = 0; i < KILLS; i += 1) world.at(110_000 * random(), () => processes.killOne());
  }
  if (options.seed % 2 === 0) scheduleLosses(scene);
  const { keyStore } = processes;
  for (let i = keyStore === undefined ? 0 : OUTAGES; i > 0; i -= 1) {
    world.at(110_000 * random(), () => keyStore?.goAway(OUTAGE_LASTS * random()));
  }
  world.runUntil(200_000);
  return { contradictions, reported: counts };
}

/** The store of replicas loses what it stored last, at times. */
function scheduleLosses({ world, random, processes: { keyStore } }: OracleScene): void {
  if (keyStore === undefined) return;
  for (let i = 0; i < LOSSES; i += 1) {
    const at = 110_000 * random();
    world.at(at, () => world.at(at + LOST_TIME * random(), keyStore.takeSnapshot()));
  }
}

/**
 * What a report has to be true to after the store has lost what it knew: that a key is in use, and what the request knew when it got
 * the key before.
 */
function isCertainAfter(lostAt: Millis | undefined, reported: ReportedOutcome, { atClaim }: OwnKnowledge): boolean {
  if (lostAt === undefined || reported === 'in use') return true;
  return reported === 'not done' && atClaim !== undefined && atClaim.at < lostAt && atClaim.isUnresolved;
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
    ...{
      underWay: 0,
      isOpen: false,
      lastOpenAt: NEVER,
      lastCutAt: NEVER,
      claims: 0,
      lastClaimAt: NEVER,
      answers: 0,
      arriving: 0,
      isSettled: false,
    },
  };
  let at = 100_000 * random();
  for (let tries = 1 + Math.floor(5 * random()); tries > 0; tries -= 1) {
    world.at(at, () => new SimulatedRequest(scene, intent).start());
    at += random() < 0.2 ? 20 * random() : random() < 0.7 ? 600 * random() : 2 * TTL * random();
  }
}
