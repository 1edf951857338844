/** Redis runs a translation of the code that simulations run: both return the same responses. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileScenario } from '../../../src/simulator/scenario-file/compile-scenario.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Requester } from '../../../src/core/quota/requester.ts';
import { ANY_REQUESTER } from '../../../src/core/quota/requester.ts';
import type { BlockStatus } from '../../../src/core/rate/breaker/active-block.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import { runScenario } from '../../../src/simulator/run-scenario.ts';
import { makeSimulatedPool } from '../../../src/simulator/sharing/simulated-pool.ts';
import { UsageLog } from '../../../src/sharing/protocol/usage-log.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST, makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import type { LeaseResponse, LeaseRequest, LastKnownLimit } from '../../../src/sharing/replicas/replica-protocol.ts';
import { loadLibraryScenario } from '../../support/core/scenario-library.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { ScriptCall } from '../../support/redis/script-runner.ts';
import { millis, openScriptRunner } from '../../support/redis/script-runner.ts';

/** Microseconds. */
const EPOCH = 1_700_000_000_000_000;
const REF: LimitRef = { upstream: 'till', nested: '', scope: 'upstream', key: '' };
/** At most as many as expire at a time: among those last seen in the same microsecond, any may be first. */
const HOLDERS = ['a', 'b', 'c', 'd'];
/** Mostly one credential, or no quota would apply for long. */
const REQUESTERS: readonly Requester[] = [
  { credential: 0, client: 1 },
  { credential: 0, client: 9_007_199_254_740_991 },
  { credential: 0, client: undefined },
  { credential: 0, client: 1 },
  { credential: 0, client: 1 },
  { credential: 7, client: 2 },
  { credential: undefined, client: undefined },
];
const CLIENTS = ['x', 'y', 'a', '1:x', 'ü'];

/** One event at a replica, described by numbers. */
const seen = fc.record({
  kind: fc.nat(36),
  ago: fc.nat(3000),
  part: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
});

const step = fc.record({
  holder: fc.nat(HOLDERS.length - 1),
  /** Microseconds since the last call; occasionally seconds. */
  passed: fc.oneof(
    { weight: 8, arbitrary: fc.nat(60_000) },
    { weight: 2, arbitrary: fc.nat(400_000) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0, 1, 3_100_000, 12_000_000, 130_000_000, -10_000, -900_000, -5_000_000, 700_000_000),
    },
  ),
  seen: fc.array(seen, { maxLength: 25 }),
  want: fc.oneof(fc.constant(0), fc.nat(12), fc.double({ min: 0, max: 3, noNaN: true })),
  weight: fc.constantFrom(0, 0.1, 1, 2, 7),
  roundTrip: fc.constantFrom(0, 1.5, 40),
  /** The error in its reported tokens and requests in flight. */
  offBy: fc.constantFrom(0, 0, 0, 1, -1, 5),
  /** The skew of its clock. */
  skew: fc.constantFrom(0, 0, 0, 0.3, -20, 1500, -40_000),
  groups: fc.array(fc.tuple(fc.constantFrom(...CLIENTS), fc.boolean()), { maxLength: 5 }),
  known: fc.constantFrom('told', 'told', 'told', 'nothing', 'more'),
  isLost: fc.nat(9),
  random: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
});

const settings = fc.record({
  initialRate: fc.option(fc.constantFrom(0.5, 20, 333.3), { nil: undefined }),
  maxRate: fc.constantFrom(Number.POSITIVE_INFINITY, 100, 1e5),
  minRate: fc.constantFrom(0.1, 1),
  cooldown: fc.constantFrom(0, 1000, 5000),
  maxProbeDelay: fc.constantFrom(undefined, 2000),
  learnsFromLatency: fc.boolean(),
});

type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never;

/** Mostly two clients with similar requests. */
const SOURCES = [
  makeRequestAttributes('a', 'a', 0, '/v1/charges', ''),
  makeRequestAttributes('a', 'a', 0, '/v1/charges', ''),
  makeRequestAttributes('b', 'b1', 7, '/v1/charges/1', ''),
  makeRequestAttributes('b', 'b2', 7, '/v1/refunds', ''),
];

function sourceFor(part: number): RequestAttributes | undefined {
  return SOURCES[Math.floor(1000 * part) % (SOURCES.length + 1)];
}

function blockTill(probeAt: number, part: number): BlockStatus {
  const scope = sourceFor(part) ?? ANY_REQUEST;
  const held = { heldClient: part < 0.5 ? 0 : (scope[1] ?? 0), heldClientUntil: probeAt + 2000 };
  const cause = part % 0.2 < 0.1 ? 'errors' : 'rejections';
  return { cause, scope, since: probeAt, isPartial: false, probeAt, expectedAt: probeAt, ...held };
}

class Holder {
  readonly log = new UsageLog();
  lent = 0;
  inFlight = 0;
  unanswered = 0;
  serial = 0;
  known: LastKnownLimit = {
    epoch: 0,
    since: Number.NEGATIVE_INFINITY,
    rate: Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
  };
  slots: readonly number[] = [];

  /** Mostly ordinary events of a proxy, and a few that should never occur. */
  see({ kind, ago, part }: Step['seen'][number], now: number): void {
    const { log } = this;
    const at = now - ago / 100;
    const sentAt = at - 200 * part;
    if (kind < 8) {
      if (this.lent > 0) log.tokenReturned();
      this.lent = Math.max(0, this.lent - 1);
      this.serial += 1;
      this.inFlight += 1;
      this.unanswered += 1;
      log.sent(this.serial, at);
    } else if (kind < 14) {
      const source = kind < 12 ? undefined : sourceFor(part);
      log.accepted(sentAt, Math.floor(part * 8), at, source);
      this.#end(at);
    } else if (kind < 20) {
      const retryAfter = part < 0.2 ? 5000 * part : undefined;
      const rejection = {
        sentAt,
        inFlightAtSend: Math.floor(part * 8),
        retryAfterMs: retryAfter,
        activeClients: kind - 14,
        overrun: part > 0.8,
        attributes: sourceFor(part),
      };
      log.rejected(rejection, at);
      this.#end(at);
    } else if (kind < 22) {
      const retryAfter = part < 0.5 ? 1000 * part : undefined;
      const isUnreachable = kind === 21 && part > 0.4;
      log.failed(
        { sentAt, retryAfterMs: retryAfter, overrun: part > 0.9, isUnreachable, attributes: sourceFor(part) },
        at,
      );
      this.#end(at);
    } else this.#addRareEvent(kind, part, { sentAt, at, now });
  }

  /** Rare events. */
  #addRareEvent(
    kind: number,
    part: number,
    { sentAt, at, now }: Readonly<Record<'sentAt' | 'at' | 'now', number>>,
  ): void {
    const { log } = this;
    const quota = { remaining: Math.floor(60 * part), limit: part < 0.8 ? 100 : undefined, window: 10_000 };
    const nothing = { remaining: 0, limit: undefined, resetIn: undefined, window: undefined };
    const requester = REQUESTERS[Math.floor(1000 * part) % REQUESTERS.length];
    const resetIn = part < 0.9 ? 1000 * Math.ceil(9 * part) : undefined;
    const owner = {
      ...ANY_REQUESTER,
      ...requester,
      isCommon: part < 0.5,
      isSpent: part % 0.2 < 0.1,
      until: now + 2000 * part,
    };
    if (kind === 22) log.quota({ ...quota, resetIn }, sentAt, at, requester);
    else if (kind === 23) log.quota(nothing, sentAt, at);
    else if (kind === 30) log.quotaDisowned(part > 0.7, at);
    else if (kind === 31) log.quotaSpent(owner, at);
    else if (kind === 24) log.stopped(now + 2000 * part);
    else if (kind === 25) log.rateRemembered(77 * part, at);
    else if (kind === 26) log.probeAbandoned();
    else if (kind === 27) log.epochSeen(Math.floor(4 * part));
    else if (kind === 28) log.ended(at);
    else if (kind === 32) log.probed(at);
    else if (kind === 33) log.blockBypassed(at);
    else if (kind === 34) log.blocked(blockTill(at + 3000 * part, part), at);
    else if (kind > 34) log.abandoned(sentAt, at);
    else log.tokenUnused(this.slots[Math.floor(part * this.slots.length)] ?? now);
  }

  #end(at: number): void {
    if (this.inFlight === 0) return;
    // Some attempts end without a report of their response.
    if (this.inFlight % 5 > 0 && this.unanswered > 0) {
      this.unanswered -= 1;
      this.log.responded(at);
    }
    this.inFlight -= 1;
    this.unanswered = Math.min(this.unanswered, this.inFlight);
    this.log.ended(at);
  }

  receive({ terms, slots, now }: LeaseResponse): void {
    const { epoch, rate, ceiling } = terms;
    this.known = { epoch, since: epoch === this.known.epoch ? this.known.since : now, rate, ceiling };
    this.slots = slots;
    this.lent += slots.length;
  }
}

/** The calls of the replicas, and the responses of the in-memory backend. */
function play(
  given: RateSettings,
  steps: readonly Step[],
): { readonly calls: ScriptCall[]; readonly answers: LeaseResponse[] } {
  const memory = new MemoryBackend();
  const holders = HOLDERS.map(() => new Holder());
  const calls: ScriptCall[] = [];
  const answers: LeaseResponse[] = [];
  let time = EPOCH;
  for (const { holder: index, passed, seen: all, offBy, skew, known, isLost, groups, ...rest } of steps) {
    const holder = holders[index];
    if (holder === undefined) throw new Error(`there is no holder ${index}`);
    time += passed;
    const now = millis(time) + skew;
    for (const each of all) holder.see(each, now);
    const call: LeaseRequest = {
      ...rest,
      replicaId: HOLDERS[index] ?? '',
      now,
      usage: holder.log.take(),
      leasedTokens: Math.max(0, holder.lent + offBy),
      inFlight: Math.max(0, holder.inFlight - offBy),
      unanswered: Math.min(holder.unanswered, Math.max(0, holder.inFlight - offBy)),
      known: knownTo(holder, known),
      ...namedOnce(groups),
    };
    const answer = memory.serve(REF, given, call, millis(time));
    calls.push({ settings: given, call, time });
    answers.push(asEncoded(answer));
    if (isLost > 0) holder.receive(answer);
  }
  return { calls, answers };
}

/** Each group once, either as waiting or as one that is to return. */
function namedOnce(groups: Step['groups']): Pick<LeaseRequest, 'waitingGroups' | 'returningGroups'> {
  const isWaitingByGroup = [...new Map(groups)];
  const named = (isWaiting: boolean): string[] =>
    isWaitingByGroup.filter(([, each]) => each === isWaiting).map(([group]) => group);
  return { waitingGroups: named(true), returningGroups: named(false) };
}

/** The response as it is encoded: decreases without their unused fields. */
function asEncoded(answer: LeaseResponse): LeaseResponse {
  return { ...answer, decreases: answer.decreases.map(({ cause, from, to }) => ({ cause, from, to })) };
}

function knownTo({ known }: Holder, what: Step['known']): LastKnownLimit {
  if (what === 'nothing') return { ...known, epoch: 0 };
  return what === 'more' ? { ...known, epoch: known.epoch + 7, rate: Math.min(known.rate, 40), ceiling: 50 } : known;
}

test('returns the same responses from Lua as from TypeScript', async () => {
  const pool = await openScriptRunner((await startRedis()).client());
  let runs = 0;
  const sequences = fc.tuple(settings, fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }));
  await fc.assert(
    fc.asyncProperty(sequences, async ([given, steps]) => {
      const { calls, answers } = play(given, steps);
      runs += 1;
      expect(await pool.run(`random-${runs}`, calls)).toEqual(answers);
    }),
    { numRuns: 300 },
  );
});

/** Calls of simulated replicas with an upstream, and the responses of the in-memory backend. */
function record(name: string, duration: number): { readonly calls: ScriptCall[]; readonly answers: LeaseResponse[] } {
  const scenario = compileScenario(name, { ...loadLibraryScenario(name), warmup: 0, replicas: 3, duration });
  const calls: ScriptCall[] = [];
  const answers: LeaseResponse[] = [];
  const clock = (now: number): number => millis(Math.round(EPOCH + 1000 * now));
  const parts = makeSimulatedPool(scenario, { maxTracked: 1000, latency: 0.5, clock });
  const { pool } = parts;
  const answer = pool.serve.bind(pool);
  pool.serve = (ref, given, call, time) => {
    const response = answer(ref, given, call, time);
    calls.push({ settings: given, call, time: Math.round(1000 * time) });
    answers.push(asEncoded(response));
    return response;
  };
  runScenario({ scenario, seed: 1, ...parts });
  return { calls, answers };
}

const SLOW_SERVICE = ['latency', 'limited places', 'awaits a place', 'limited responses', 'test', 'others unanswered'];

/** For each run, the events that must occur in it. */
const RUNS: readonly { readonly name: string; readonly duration: number; readonly seen: readonly string[] }[] = [
  // Until its step at 60 s, it is the scenario token-bucket.
  {
    name: 'step-down',
    duration: 100_000,
    seen: ['first', 'small', 'heavy', 'backoff', 'cooldown', 'restoring', 'waits'],
  },
  { name: 'fixed-window', duration: 40_000, seen: ['blocked', 'probe'] },
  // All occur within 10 s. From then on, a replica that awaits a place calls hundreds of times a second.
  { name: 'concurrency', duration: 15_000, seen: ['places', 'limited places', 'awaits a place'] },
  { name: 'outage', duration: 90_000, seen: ['errors', 'probe', 'open'] },
  { name: 'minute-window-hints', duration: 60_000, seen: ['quota'] },
  // Under a limit on requests in flight, a replica calls for each response.
  { name: 'slow-service', duration: 20_000, seen: SLOW_SERVICE },
  { name: 'slow-service-cold-start', duration: 15_000, seen: SLOW_SERVICE },
  { name: 'slow-service-workers-added', duration: 15_000, seen: SLOW_SERVICE },
  { name: 'clients-leave-two-workers', duration: 30_000, seen: SLOW_SERVICE },
  { name: 'slow-reports', duration: 60_000, seen: ['open'] },
];

// Thousands of calls, on a shared processor.
const PLAYED_WITHIN = 240_000;

test.each(RUNS)(
  'returns the same responses to replicas at an upstream: $name',
  { timeout: PLAYED_WITHIN },
  async ({ name, duration, seen }) => {
    const pool = await openScriptRunner((await startRedis()).client());
    const { calls, answers } = record(name, duration);
    expect(calls.length).toBeGreaterThan(1000);
    expect([...new Set(answers.flatMap(marksOf))]).toEqual(expect.arrayContaining([...seen]));
    expect(await pool.run(name, calls)).toEqual(answers);
  },
);

function marksOf({ terms, decreases, waitingReplicas }: LeaseResponse): string[] {
  const marks: string[] = [terms.phase, ...decreases.map(({ cause }) => cause)];
  if (terms.concurrencyLimit !== undefined) marks.push('limited places');
  if (terms.limitsUnanswered) marks.push('limited responses');
  if (terms.isLatencyTest) marks.push('test');
  if (terms.otherUnanswered > 0) marks.push('others unanswered');
  if (terms.isProbeOut) marks.push('probe');
  if (terms.awaitsPlace) marks.push('awaits a place');
  if (terms.quotaLeft !== undefined) marks.push('quota');
  if (waitingReplicas.some((count) => count > 1)) marks.push('waits');
  return marks;
}
