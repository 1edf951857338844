/** What Redis runs answers as what a simulation runs: the one is translated from the other. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import type { Requester } from '../../src/core/quota/requester.ts';
import { ANYBODY } from '../../src/core/quota/requester.ts';
import type { Block } from '../../src/core/rate/breaker/active-block.ts';
import type { RateSettings } from '../../src/core/rate/rate-state.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import { poolAmong } from '../../src/simulator/sharing/simulated-pool.ts';
import { HappeningLog } from '../../src/sharing/protocol/usage-log.ts';
import type { Source } from '../../src/core/rate/breaker/request-attributes.ts';
import { ANYWHERE, sourceOf } from '../../src/core/rate/breaker/request-attributes.ts';
import { MemoryPool } from '../../src/sharing/replicas/memory-backend.ts';
import type { Answer, Call, Known } from '../../src/sharing/replicas/replica-protocol.ts';
import { loadLibrary } from '../support/library.ts';
import { startRedis } from '../support/redis-server.ts';
import type { Told } from '../support/script-pool.ts';
import { millis, openScriptPool } from '../support/script-pool.ts';

/** Microseconds. */
const EPOCH = 1_700_000_000_000_000;
const REF: LimitRef = { upstream: 'till', nested: '', scope: 'upstream', key: '' };
/** No more than are buried at a time: of those who were heard in the same microsecond, any may be first. */
const HOLDERS = ['a', 'b', 'c', 'd'];
/** Mostly one credential: else no quota would be in force for long. */
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

/** One thing that a holder saw, as some numbers in [0, 1) that say what. */
const seen = fc.record({
  kind: fc.nat(34),
  ago: fc.nat(3000),
  part: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
});

const step = fc.record({
  holder: fc.nat(HOLDERS.length - 1),
  /** Microseconds since the last call; now and then so many seconds. */
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
  /** Of what it has in hand and in flight, it tells so many more or fewer. */
  offBy: fc.constantFrom(0, 0, 0, 1, -1, 5),
  /** Its clock is off by so much. */
  skew: fc.constantFrom(0, 0, 0, 0.3, -20, 1500, -40_000),
  clients: fc.subarray(CLIENTS),
  known: fc.constantFrom('told', 'told', 'told', 'nothing', 'more'),
  isLost: fc.nat(9),
  chance: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
});

const settings = fc.record({
  initialRate: fc.option(fc.constantFrom(0.5, 20, 333.3), { nil: undefined }),
  maxRate: fc.constantFrom(Number.POSITIVE_INFINITY, 100, 1e5),
  minRate: fc.constantFrom(0.1, 1),
  cooldown: fc.constantFrom(0, 1000, 5000),
  maxProbeDelay: fc.constantFrom(undefined, 2000),
});

type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never;

/** Mostly of two clients, who ask for much the same. */
const SOURCES = [
  sourceOf('a', 'a', 0, '/v1/charges', ''),
  sourceOf('a', 'a', 0, '/v1/charges', ''),
  sourceOf('b', 'b1', 7, '/v1/charges/1', ''),
  sourceOf('b', 'b2', 7, '/v1/refunds', ''),
];

function sourceFor(part: number): Source | undefined {
  return SOURCES[Math.floor(1000 * part) % (SOURCES.length + 1)];
}

function blockTill(probeAt: number, part: number): Block {
  const scope = sourceFor(part) ?? ANYWHERE;
  const asked = { asked: part < 0.5 ? 0 : (scope[1] ?? 0), askedUntil: probeAt + 2000 };
  const cause = part % 0.2 < 0.1 ? 'errors' : 'rejections';
  return { cause, scope, since: probeAt, isPartial: false, probeAt, expectedAt: probeAt, ...asked };
}

class Holder {
  readonly log = new HappeningLog();
  lent = 0;
  inFlight = 0;
  serial = 0;
  known: Known = {
    epoch: 0,
    since: Number.NEGATIVE_INFINITY,
    rate: Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
  };
  slots: readonly number[] = [];

  /** Most of it is what happens to a proxy, the rest what never should. */
  see({ kind, ago, part }: Step['seen'][number], now: number): void {
    const { log } = this;
    const at = now - ago / 100;
    const sentAt = at - 200 * part;
    if (kind < 8) {
      if (this.lent > 0) log.givenBack();
      this.lent = Math.max(0, this.lent - 1);
      this.serial += 1;
      this.inFlight += 1;
      log.sent(this.serial, at);
    } else if (kind < 14) {
      const source = kind < 12 ? undefined : sourceFor(part);
      log.accepted(sentAt, Math.floor(part * 8), at, source);
      this.#end(at);
    } else if (kind < 20) {
      const retryAfter = part < 0.2 ? 5000 * part : undefined;
      const rejection = {
        sentAt,
        among: Math.floor(part * 8),
        retryAfter,
        activeClients: kind - 14,
        overrun: part > 0.8,
        source: sourceFor(part),
      };
      log.rejected(rejection, at);
      this.#end(at);
    } else if (kind < 22) {
      const retryAfter = part < 0.5 ? 1000 * part : undefined;
      log.failed({ sentAt, retryAfter, overrun: part > 0.9, source: sourceFor(part) }, at);
      this.#end(at);
    } else this.#hearOf(kind, part, { sentAt, at, now });
  }

  /** What comes up once in a while. */
  #hearOf(kind: number, part: number, { sentAt, at, now }: Readonly<Record<'sentAt' | 'at' | 'now', number>>): void {
    const { log } = this;
    const quota = { remaining: Math.floor(60 * part), limit: part < 0.8 ? 100 : undefined, window: 10_000 };
    const nothing = { remaining: 0, limit: undefined, resetIn: undefined, window: undefined };
    const requester = REQUESTERS[Math.floor(1000 * part) % REQUESTERS.length];
    const resetIn = part < 0.9 ? 1000 * Math.ceil(9 * part) : undefined;
    const owner = {
      ...ANYBODY,
      ...requester,
      isCommon: part < 0.5,
      isSpent: part % 0.2 < 0.1,
      until: now + 2000 * part,
    };
    if (kind === 22) log.quota({ ...quota, resetIn }, sentAt, at, requester);
    else if (kind === 23) log.quota(nothing, sentAt, at);
    else if (kind === 30) log.quotaDisowned(part > 0.7, at);
    else if (kind === 31) log.quotaSpent(owner, at);
    else if (kind === 24) log.stop(now + 2000 * part);
    else if (kind === 25) log.remember(77 * part, at);
    else if (kind === 26) log.abandonProbe();
    else if (kind === 27) log.epoch(Math.floor(4 * part));
    else if (kind === 28) log.ended(at);
    else if (kind === 32) log.probed(at);
    else if (kind === 33) log.passedBy(at);
    else if (kind === 34) log.blocked(blockTill(at + 3000 * part, part), at);
    else log.unspent(this.slots[Math.floor(part * this.slots.length)] ?? now);
  }

  #end(at: number): void {
    if (this.inFlight === 0) return;
    this.inFlight -= 1;
    this.log.ended(at);
  }

  hear({ terms, slots, now }: Answer): void {
    const { epoch, rate, ceiling } = terms;
    this.known = { epoch, since: epoch === this.known.epoch ? this.known.since : now, rate, ceiling };
    this.slots = slots;
    this.lent += slots.length;
  }
}

/** What the holders call, and what the pool in memory answers. */
function play(given: RateSettings, steps: readonly Step[]): { readonly calls: Told[]; readonly answers: Answer[] } {
  const memory = new MemoryPool();
  const holders = HOLDERS.map(() => new Holder());
  const calls: Told[] = [];
  const answers: Answer[] = [];
  let time = EPOCH;
  for (const { holder: index, passed, seen: all, offBy, skew, known, isLost, ...rest } of steps) {
    const holder = holders[index];
    if (holder === undefined) throw new Error(`there is no holder ${index}`);
    time += passed;
    const now = millis(time) + skew;
    for (const each of all) holder.see(each, now);
    const call: Call = {
      ...rest,
      holder: HOLDERS[index] ?? '',
      now,
      happenings: holder.log.take(),
      lent: Math.max(0, holder.lent + offBy),
      inFlight: Math.max(0, holder.inFlight - offBy),
      known: knownTo(holder, known),
    };
    const answer = memory.call(REF, given, call, millis(time));
    calls.push({ settings: given, call, time });
    answers.push(asTold(answer));
    if (isLost > 0) holder.hear(answer);
  }
  return { calls, answers };
}

/** As it travels: of cuts, without what nobody asks for. */
function asTold(answer: Answer): Answer {
  return { ...answer, cuts: answer.cuts.map(({ cause, from, to }) => ({ cause, from, to })) };
}

function knownTo({ known }: Holder, what: Step['known']): Known {
  if (what === 'nothing') return { ...known, epoch: 0 };
  return what === 'more' ? { ...known, epoch: known.epoch + 7, rate: Math.min(known.rate, 40), ceiling: 50 } : known;
}

test('the same calls are answered the same', async () => {
  const pool = await openScriptPool((await startRedis()).client());
  let runs = 0;
  const sequences = fc.tuple(settings, fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }));
  await fc.assert(
    fc.asyncProperty(sequences, async ([given, steps]) => {
      const { calls, answers } = play(given, steps);
      runs += 1;
      expect(await pool.play(`random-${runs}`, calls)).toEqual(answers);
    }),
    { numRuns: 300 },
  );
});

/** Calls of replicas in a world with an upstream, and what the pool in memory answers. */
function record(name: string, duration: number): { readonly calls: Told[]; readonly answers: Answer[] } {
  const scenario = compileScenario(name, { ...loadLibrary(name), warmup: 0, replicas: 3, duration });
  const calls: Told[] = [];
  const answers: Answer[] = [];
  const clock = (now: number): number => millis(Math.round(EPOCH + 1000 * now));
  const parts = poolAmong(scenario, { maxTracked: 1000, latency: 0.5, clock });
  const { pool } = parts;
  const answer = pool.call.bind(pool);
  pool.call = (ref, given, call, time) => {
    const told = answer(ref, given, call, time);
    calls.push({ settings: given, call, time: Math.round(1000 * time) });
    answers.push(asTold(told));
    return told;
  };
  runScenario({ scenario, seed: 1, ...parts });
  return { calls, answers };
}

/** Of each run, what has to have come up in it. */
const RUNS: readonly { readonly name: string; readonly duration: number; readonly seen: readonly string[] }[] = [
  { name: 'token-bucket', duration: 40_000, seen: ['first', 'small', 'backoff', 'cooldown', 'restoring', 'waits'] },
  { name: 'step-down', duration: 100_000, seen: ['heavy'] },
  { name: 'fixed-window', duration: 40_000, seen: ['blocked', 'probe'] },
  { name: 'concurrency', duration: 60_000, seen: ['places', 'limited places'] },
  { name: 'outage', duration: 90_000, seen: ['errors', 'probe', 'open'] },
  { name: 'minute-window-hints', duration: 60_000, seen: ['quota'] },
];

// A replica asks up to 1500 times a second here: tens of thousands of calls, by a process that may have to share its processor.
const PLAYED_WITHIN = 240_000;

test.each(RUNS)(
  'replicas at an upstream are answered the same: $name',
  { timeout: PLAYED_WITHIN },
  async ({ name, duration, seen }) => {
    const pool = await openScriptPool((await startRedis()).client());
    const { calls, answers } = record(name, duration);
    expect(calls.length).toBeGreaterThan(1000);
    expect([...new Set(answers.flatMap(marksOf))]).toEqual(expect.arrayContaining([...seen]));
    expect(await pool.play(name, calls)).toEqual(answers);
  },
);

function marksOf({ terms, cuts, waitsWith }: Answer): string[] {
  const marks: string[] = [terms.phase, ...cuts.map(({ cause }) => cause)];
  if (terms.places !== undefined) marks.push('limited places');
  if (terms.isProbeOut) marks.push('probe');
  if (terms.quotaLeft !== undefined) marks.push('quota');
  if (waitsWith.some((count) => count > 1)) marks.push('waits');
  return marks;
}
