/** What Redis runs answers as what a simulation runs: the one is translated from the other. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LimitRef } from '../../src/policy/limit-ref.ts';
import type { RateSettings } from '../../src/policy/rate/state.ts';
import { HappeningLog } from '../../src/state/leasing/happenings.ts';
import { MemoryPool } from '../../src/state/pool/memory-pool.ts';
import type { Answer, Call, Known } from '../../src/state/pool/words.ts';
import type { ScriptPool, Told } from '../support/script-pool.ts';
import { millis, startScriptPool } from '../support/script-pool.ts';

let pool: ScriptPool;
beforeAll(async () => {
  pool = await startScriptPool();
});
afterAll(() => pool.stop());

const REF: LimitRef = { upstream: 'till', scope: 'upstream', key: '' };
/** No more than are buried at a time: of those who were heard in the same microsecond, any may be first. */
const HOLDERS = ['a', 'b', 'c', 'd'];
const CLIENTS = ['x', 'y', 'a', '1:x', 'ü'];

/** One thing that a holder saw, as some numbers in [0, 1) that say what. */
const seen = fc.record({
  kind: fc.nat(30),
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
});

type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never;

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
    const slot = this.slots[Math.floor(part * this.slots.length)] ?? now;
    if (kind < 8) {
      if (this.lent > 0) log.givenBack();
      this.lent = Math.max(0, this.lent - 1);
      this.serial += 1;
      this.inFlight += 1;
      log.sent(this.serial, at);
    } else if (kind < 14) {
      log.accepted(sentAt, Math.floor(part * 8), at);
      this.#end(at);
    } else if (kind < 20) {
      const retryAfter = part < 0.2 ? 5000 * part : undefined;
      const rejection = {
        sentAt,
        among: Math.floor(part * 8),
        retryAfter,
        activeClients: kind - 14,
        overrun: part > 0.8,
      };
      log.rejected(rejection, at);
      this.#end(at);
    } else if (kind < 22) {
      log.failed(sentAt, at, part < 0.5 ? 1000 * part : undefined, part > 0.9);
      this.#end(at);
    } else if (kind === 22) {
      const limit = part < 0.8 ? 100 : undefined;
      const remaining = Math.floor(60 * part);
      log.quota(
        { remaining, limit, resetIn: part < 0.9 ? 1000 * Math.ceil(9 * part) : undefined, window: 10_000 },
        sentAt,
        at,
      );
    } else if (kind === 23)
      log.quota({ remaining: 0, limit: undefined, resetIn: undefined, window: undefined }, sentAt, at);
    else if (kind === 24) log.stop(now + 2000 * part);
    else if (kind === 25) log.remember(77 * part, at);
    else if (kind === 26) log.abandonProbe();
    else if (kind === 27) log.epoch(Math.floor(4 * part));
    else if (kind === 28) log.ended(at);
    else log.unspent(slot);
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
  let time = 1_700_000_000_000_000;
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
    answers.push({ ...answer, cuts: answer.cuts.map(({ cause, from, to }) => ({ cause, from, to })) });
    if (isLost > 0) holder.hear(answer);
  }
  return { calls, answers };
}

function knownTo({ known }: Holder, what: Step['known']): Known {
  if (what === 'nothing') return { ...known, epoch: 0 };
  return what === 'more' ? { ...known, epoch: known.epoch + 7, rate: Math.min(known.rate, 40), ceiling: 50 } : known;
}

test('the same calls are answered the same', async () => {
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
