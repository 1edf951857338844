import type { LimitView, Listen } from '../../core/events/proxy-events.ts';
import { Heap } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { LocalMeter } from '../../core/limits/meter.ts';
import { prefixOf } from '../../core/quota/requester.ts';
import type { Order, Steering } from '../../core/limits/operator-override.ts';
import { obey, UNSTEERED } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { keepStop } from '../../core/limits/meter-stop.ts';
import type { Learned } from '../../store/persistence/learned-state.ts';
import type { HolderId } from './worker-account.ts';
import type { LendingTerms } from './lease-timing.ts';
import { LentLimit } from './worker-shared-limit.ts';
import { nameOf } from '../protocol/limit-terms.ts';
import type { Hold, LimitTidings, Report, Tidings } from './worker-protocol.ts';

export interface LenderParts {
  readonly terms: LendingTerms;
  /** Undefined where nothing is known of it any more. */
  readonly makeMeter: (ref: LimitRef) => LocalMeter | undefined;
  /** Of limits: cuts and changes of state, each once. */
  readonly listen: Listen;
  readonly send: (to: HolderId, tidings: Tidings) => void;
  /** Limits of single clients or credentials that are remembered at most. */
  readonly maxLimits: number;
}

/** Limits that are looked at for one to forget. */
const LOOKS = 32;
/** Limits of one name, one for each endpoint or the like. */
const MOST_OF_NAME = 1000;
const OF_CLIENTS = '';
/** Clients that are remembered as told to wait, for leaseholders that come later. */
const MOST_HOLDS = 10_000;

/**
 * Keeps the limits that several leaseholders share: learns from what they report, and lends them its tokens, each of
 * which is good for one request at one time. Pure: it is told the time, and says when it wants to be woken.
 */
export class Lender {
  readonly #parts: LenderParts;
  readonly #holders = new Set<HolderId>();
  readonly #limits = new Map<string, LentLimit>();
  readonly #wakes = new Heap<LentLimit>((a, b) => a.wakeAt < b.wakeAt);
  readonly #holds = new Map<string, Millis>();
  /** What an operator wants, by upstream. */
  readonly #steering = new Map<string, Steering>();
  /** Of which there may be very many, least recently used first: those of clients and credentials; those of endpoints, by name. */
  readonly #many = new Map<string, Map<string, LentLimit>>();
  #forgotten = 0;

  /** @param shared limits that are there from the start; those of clients are made when they are first felt */
  constructor(parts: LenderParts, shared: Iterable<LimitRef>) {
    this.#parts = parts;
    for (const ref of shared) this.#make(ref);
  }

  get bound(): { readonly used: number; readonly reached: number } {
    const used = [...this.#many].map(([family, limits]) => limits.size / this.#mostOf(family));
    return { used: Math.max(0, ...used), reached: this.#forgotten };
  }

  /** A leaseholder is there: it is told how all limits stand. */
  join(holder: HolderId, now: Millis): void {
    this.#holders.add(holder);
    for (const limit of this.#limits.values()) limit.join(holder, now);
    const holds = [...this.#holds]
      .map(([client, until]): Hold => ({ client, until }))
      .filter(({ until }) => until > now);
    if (holds.length > 0) this.#parts.send(holder, { limits: [], holds });
    const limiting = [...this.#limits.values()].filter((limit) => !limit.isFree(now));
    this.#tell(limiting, now);
  }

  /** It is gone, with all it had. */
  leave(holder: HolderId, now: Millis): void {
    this.#holders.delete(holder);
    for (const limit of this.#limits.values()) {
      limit.leave(holder);
      limit.lend(now);
      this.#plan(limit);
    }
    this.#tell(this.#limits.values(), now);
  }

  hear(holder: HolderId, report: Report, now: Millis): void {
    if (!this.#holders.has(holder)) return; // its last words, after it was taken for dead
    this.#passOn(holder, report.holds, now);
    const touched: LentLimit[] = [];
    for (const told of report.limits) {
      const limit = this.#find(told.ref, now);
      if (limit === undefined) continue;
      limit.hear(holder, told, now);
      touched.push(limit);
    }
    this.#serve(touched, now);
  }

  /**
   * An operator's word on an upstream's own limits, and on those that will be made; and that it is to be asked at once
   * whether it lets anything through, on the nested ones too.
   */
  steer(upstream: string, order: Order, now: Millis): void {
    const steering = obey(this.#steering.get(upstream) ?? UNSTEERED, order);
    this.#steering.set(upstream, steering);
    const touched = [...this.#limits.values()].filter(({ limit }) => limit.ref.upstream === upstream);
    for (const limit of touched) {
      if (limit.limit.ref.nested === '') limit.steer(steering, now);
      if (order.do === 'unblock') limit.probeNow(now);
    }
    this.#serve(touched, now);
  }

  /** A client begins anew, with whomever. */
  forgive(client: string): void {
    for (const held of this.#holds.keys()) {
      if (held.endsWith(`\0${client}`) || held.includes(`\0${prefixOf(client)}`)) this.#holds.delete(held);
    }
  }

  /** When `wake` has something to do; undefined when nobody waits. */
  nextWake(): Millis | undefined {
    return this.#wakes.peek()?.wakeAt;
  }

  wake(now: Millis): void {
    const due: LentLimit[] = [];
    for (let limit = this.#wakes.peek(); limit !== undefined && limit.wakeAt <= now; limit = this.#wakes.peek()) {
      this.#wakes.remove(limit);
      limit.reclaimSilent(now);
      due.push(limit);
    }
    this.#serve(due, now);
  }

  /** As they stand; who waits, the leaseholders know. */
  view(now: Millis): LimitView[] {
    const views: LimitView[] = [];
    for (const limit of this.limits(now)) views.push(limit.view(now));
    return views;
  }

  /** What has been learned of them: not what operators want. */
  *learned(now: Millis): Iterable<LimitView> {
    for (const each of this.#limits.values()) {
      each.advance(now);
      yield each.limit.view(now, each.meter);
    }
  }

  *limits(now: Millis): Iterable<Limit> {
    for (const each of this.#limits.values()) {
      each.advance(now);
      yield each.limit;
    }
  }

  /** As orders for who comes later: what operators want of the limits. */
  orders(now: Millis): readonly { readonly upstream: string; readonly order: Order }[] {
    return [...this.#steering].flatMap(([upstream, { pinned, blockedUntil }]) => [
      ...(pinned === undefined ? [] : [{ upstream, order: { do: 'pin', rate: pinned } as const }]),
      ...(blockedUntil <= now ? [] : [{ upstream, order: { do: 'block', until: blockedUntil } as const }]),
    ]);
  }

  /** Limits that are to be there from now on, as those of the start; and all as they stand by settings that have changed. */
  review(shared: Iterable<LimitRef>, now: Millis): void {
    for (const ref of shared) this.#find(ref, now);
    this.#serve([...this.#limits.values()], now);
  }

  /**
   * Nobody asks for the others any more.
   * @param isKnown of upstreams: of others, what an operator wanted is forgotten too
   */
  retain(isKept: (ref: LimitRef) => boolean, isKnown: (upstream: string) => boolean): void {
    for (const upstream of this.#steering.keys()) if (!isKnown(upstream)) this.#steering.delete(upstream);
    for (const [name, each] of this.#limits) {
      if (isKept(each.limit.ref)) continue;
      this.#drop(name, each);
    }
  }

  /** Clients that are to wait, `most` at most. */
  holds(most: number, now: Millis): Hold[] {
    const waiting = [...this.#holds].filter(([, until]) => until > now);
    return waiting.slice(0, most).map(([client, until]) => ({ client, until }));
  }

  /** Goes on from what another process had learned, before anybody has joined. */
  restore({ limits, holds }: Learned, now: Millis): void {
    for (const known of limits) {
      const { ref, rate, ceiling, places } = known;
      const meter = this.#find(ref, now)?.meter;
      if (rate !== undefined) meter?.resume(rate, ceiling ?? rate, now, places);
      if (meter !== undefined) keepStop(meter, known, now);
    }
    for (const { client, until } of holds) this.#holds.set(client, until);
  }

  #serve(limits: readonly LentLimit[], now: Millis): void {
    for (const limit of limits) {
      limit.advance(now);
      limit.lend(now);
      this.#plan(limit);
    }
    this.#tell(limits, now);
  }

  #plan(limit: LentLimit): void {
    this.#wakes.remove(limit);
    if (limit.wakeAt !== Number.POSITIVE_INFINITY) this.#wakes.push(limit);
  }

  #tell(limits: Iterable<LentLimit>, now: Millis): void {
    const told = new Map<HolderId, LimitTidings[]>();
    for (const limit of limits) {
      for (const [holder, tidings] of limit.tell(now)) {
        const own = told.get(holder) ?? [];
        told.set(holder, own);
        own.push(tidings);
      }
    }
    for (const [holder, own] of told) this.#parts.send(holder, { limits: own, holds: [] });
  }

  #find(ref: LimitRef, now: Millis): LentLimit | undefined {
    const name = nameOf(ref);
    const known = this.#limits.get(name);
    if (known === undefined) return this.#make(ref, now);
    const others = this.#many.get(familyOf(ref));
    if (others?.delete(name) === true) others.set(name, known);
    return known;
  }

  #make(ref: LimitRef, now?: Millis): LentLimit | undefined {
    const { makeMeter, terms, listen } = this.#parts;
    const meter = makeMeter(ref);
    if (meter === undefined) return undefined;
    const limit = new LentLimit(ref, meter, terms, listen);
    this.#limits.set(nameOf(ref), limit);
    const steering = this.#steering.get(ref.upstream);
    if (steering !== undefined && ref.nested === '' && now !== undefined) limit.steer(steering, now);
    if (now !== undefined) for (const holder of this.#holders) limit.join(holder, now);
    if (ref.key !== '') this.#shelve(ref, limit);
    return limit;
  }

  #shelve(ref: LimitRef, newest: LentLimit): void {
    const family = familyOf(ref);
    const others = this.#many.get(family) ?? new Map<string, LentLimit>();
    this.#many.set(family, others);
    others.set(nameOf(ref), newest);
    if (others.size > this.#mostOf(family)) this.#forgetOne(others, newest);
  }

  /** One that nobody uses, and that has learned nothing if there is one near; where a look finds none, there is one too many for a while. */
  #forgetOne(others: ReadonlyMap<string, LentLimit>, newest: LentLimit): void {
    let idle: string | undefined;
    let looks = 0;
    for (const [name, each] of others) {
      if (looks === LOOKS) break;
      looks += 1;
      if (each === newest || !each.isIdle) continue;
      idle ??= name;
      if (each.limit.hasLearned) continue;
      idle = name;
      break;
    }
    const forgotten = idle === undefined ? undefined : others.get(idle);
    if (idle === undefined || forgotten === undefined) return;
    this.#drop(idle, forgotten);
    this.#forgotten += 1;
  }

  #drop(name: string, limit: LentLimit): void {
    this.#limits.delete(name);
    this.#many.get(familyOf(limit.limit.ref))?.delete(name);
    this.#wakes.remove(limit);
  }

  #mostOf(family: string): number {
    return family === OF_CLIENTS ? this.#parts.maxLimits : MOST_OF_NAME;
  }

  #passOn(from: HolderId, holds: readonly Hold[], now: Millis): void {
    if (holds.length === 0) return;
    // An allowance comes back by itself: who joins later learns it from the client.
    for (const { client, until } of holds) {
      if (until > now) this.#holds.set(client, Math.max(until, this.#holds.get(client) ?? until));
    }
    for (const [client, until] of this.#holds) {
      if (until <= now || this.#holds.size > MOST_HOLDS) this.#holds.delete(client);
    }
    for (const holder of this.#holders) if (holder !== from) this.#parts.send(holder, { limits: [], holds });
  }
}

/** Which limits make room for each other. */
function familyOf({ upstream, nested, scope }: LimitRef): string {
  return scope === 'upstream' ? `${upstream}\0${nested}` : OF_CLIENTS;
}
