import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Store } from '../../core/admission/gate-store.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Urgency } from '../protocol/leased-meter.ts';
import { LeasedMeter } from '../protocol/leased-meter.ts';
import { nameOf, startingTerms } from '../protocol/limit-terms.ts';
import { countWaiting } from '../protocol/token-demand.ts';
import type { Demand, Hold, LimitReport, LimitTidings, Report, Tidings } from './worker-protocol.ts';

/**
 * What is not urgent is told so soon: together, it costs less. To tell anything takes the lender's process a processor that may be
 * serving, so that what nobody waits for is told more seldom still.
 */
const TOLD_WITHIN: Readonly<Record<Urgency, Millis>> = { now: 0, soon: 5, 'with-the-next': 5, later: 50 };
/** How often the lender is told which clients wait, and how many of them. */
const CLIENTS_EVERY: Millis = 50;
const MOST_CLIENTS = 32;
/** How often tokens in hand are looked through for those that nobody waits for. */
const LOOK_AFTER: Millis = 10;

export interface LeaseholderParts {
  /** Has `flush` called within this time: with 0 when this turn is over. Asked again and again. */
  readonly schedule: (within: Millis) => void;
  readonly send: (report: Report) => void;
}

/** What is wired to the meters when both are there. */
export interface Held {
  readonly store: Store & { heed(hold: Hold, now: Millis): void; has(upstream: string): boolean };
  /** Tokens have come, or word of the limit: who waits is to be served. */
  readonly supply: (limit: Limit, now: Millis) => void;
}

/** All that one process leases from a lender: gathers what is to be told, and hands on what it is told. */
export class Leaseholder {
  readonly #parts: LeaseholderParts;
  readonly #limits = new Map<string, LeasedMeter>();
  /** Of which there is something to tell. */
  readonly #touched = new Set<LeasedMeter>();
  /** Which have tokens in hand. */
  readonly #holding = new Set<LeasedMeter>();
  readonly #clientsToldAt = new Map<LeasedMeter, Millis>();
  #holds: Hold[] = [];
  #held: Held | undefined;
  readonly #early: Tidings[] = [];
  /** The shortest time that was asked for since the last report. */
  #toldWithin: Millis = Number.POSITIVE_INFINITY;

  constructor(parts: LeaseholderParts) {
    this.#parts = parts;
  }

  /** For the store: the meter of a limit. */
  makeMeter(_ref: LimitRef, rate: RateSettings): LeasedMeter {
    return new LeasedMeter(startingTerms(rate), (meter, urgency) => this.#touch(meter, urgency));
  }

  /** For the store: a limit has been made. */
  adopt(limit: Limit): void {
    if (!(limit.own instanceof LeasedMeter)) return;
    limit.own.limit = limit;
    this.#limits.set(nameOf(limit.ref), limit.own);
  }

  /** For the store: a limit has been forgotten. */
  forget(limit: Limit): void {
    this.#limits.delete(nameOf(limit.ref));
    if (!(limit.own instanceof LeasedMeter)) return;
    this.#clientsToldAt.delete(limit.own);
  }

  /** For the store: a client is to wait, or is allowed less, whatever process it comes to. */
  hold(hold: Hold): void {
    this.#holds.push(hold);
    this.#parts.schedule(TOLD_WITHIN.soon);
  }

  /** What came before is heard now. */
  wire(held: Held, now: Millis): void {
    this.#held = held;
    for (const tidings of this.#early.splice(0)) this.hear(tidings, now);
  }

  /** Tells all that there is to tell. */
  flush(now: Millis): void {
    this.#toldWithin = Number.POSITIVE_INFINITY;
    for (const meter of this.#holding) {
      meter.dropLate(now);
      if (meter.limit !== undefined) meter.dropSurplus(countWaiting(meter.limit, this.#held?.store));
      if (meter.inHand === 0) this.#holding.delete(meter);
    }
    const limits: LimitReport[] = [];
    for (const meter of this.#touched) {
      const report = this.#report(meter, now);
      if (report !== undefined) limits.push(report);
    }
    this.#touched.clear();
    if (this.#holding.size > 0) this.#parts.schedule(LOOK_AFTER);
    if (limits.length === 0 && this.#holds.length === 0) return;
    const holds = this.#holds;
    this.#holds = [];
    this.#parts.send({ limits, holds });
  }

  hear(tidings: Tidings, now: Millis): void {
    const held = this.#held;
    if (held === undefined) {
      this.#early.push(tidings);
      return;
    }
    for (const hold of tidings.holds) held.store.heed(hold, now);
    for (const told of tidings.limits) this.#hearOf(told, held, now);
  }

  #hearOf(told: LimitTidings, { store, supply }: Held, now: Millis): void {
    const { ref, terms, parts } = told;
    // The lender may know of an upstream sooner than we do, or longer: what it says is said again when we ask.
    if (!store.has(ref.upstream) || store.upstream(ref.upstream).has?.(ref.nested) === false) return;
    const known = this.#limits.get(nameOf(ref)) ?? (terms.isFree ? undefined : store.make(ref).own);
    if (!(known instanceof LeasedMeter) || known.limit === undefined) return;
    const isUntold = known.isFree && !known.log.isEmpty;
    known.hear(told);
    // It has been felt: what is not told of yet says how much of it is used.
    if (isUntold && !known.isFree) this.#touch(known, 'now');
    if (parts !== undefined) known.limit.parts = parts.length === 0 ? undefined : new Map(parts);
    if (known.inHand > 0) this.#holding.add(known);
    if (this.#holding.size > 0) this.#parts.schedule(LOOK_AFTER);
    supply(known.limit, now);
  }

  #touch(meter: LeasedMeter, urgency: Urgency): void {
    this.#touched.add(meter);
    const within = TOLD_WITHIN[urgency];
    if (within >= this.#toldWithin) return;
    this.#toldWithin = within;
    this.#parts.schedule(within);
  }

  #report(meter: LeasedMeter, now: Millis): LimitReport | undefined {
    const { limit } = meter;
    if (limit === undefined) return undefined;
    const changed = meter.demand(countWaiting(limit, this.#held?.store));
    const happenings = meter.log.take();
    if (changed === undefined) return happenings.length === 0 ? undefined : { ref: limit.ref, happenings };
    return { ref: limit.ref, happenings, demand: { ...changed, ...this.#weigh(meter, limit, now) } };
  }

  #weigh(meter: LeasedMeter, limit: Limit, now: Millis): Pick<Demand, 'weight' | 'clients'> {
    const weight = limit.waitingWeight;
    const toldAt = this.#clientsToldAt.get(meter) ?? Number.NEGATIVE_INFINITY;
    if (now - toldAt < CLIENTS_EVERY) return { weight };
    this.#clientsToldAt.set(meter, now);
    const clients = limit.queue.flows.slice(0, MOST_CLIENTS).map(({ head }) => head?.client ?? '');
    return { weight, clients };
  }
}
