import type { AddResult, NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryAttempt, DeliveryEnd } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { type MessageSeal, SEAL_BYTES } from '../message-seal.ts';
import type { GroupCommit, PendingChanges } from '../sqlite/group-commit.ts';
import type { DeliveryClaim } from './delivery-claims.ts';
import type { DeliveryCounters } from './delivery-counters.ts';
import type { DeliveryExpiry } from './delivery-expiry.ts';
import { encodeDeliveryMessage } from './delivery-message-codec.ts';
import type { DeliveryRoom } from './delivery-room.ts';
import type { DeliveryRows } from './delivery-rows.ts';
import type { StoredDelivery } from './stored-delivery.ts';
import { endOfCode, type OPEN_CODES, STATE_CODES } from './delivery-tables.ts';
import type { DeliveryTimes } from './delivery-times.ts';
import type { WaitingPlace } from './due-deliveries.ts';
import type { RememberedEvents } from './remembered-events.ts';

export type EndChange = Extract<DeliveryChange, { readonly kind: 'end' }>;

export type DeliveryChange =
  | { readonly kind: 'postpone'; readonly until: Millis; readonly attempt: DeliveryAttempt | undefined }
  | {
      readonly kind: 'end';
      readonly end: DeliveryEnd;
      readonly at: Millis;
      /** How long its row is kept after that. */
      readonly keptFor: Millis;
      readonly attempt: DeliveryAttempt | undefined;
      /** Something was sent in the attempt, or could have been. */
      readonly isCounted: boolean;
      readonly sealedResult?: Buffer | undefined;
      readonly callback?: NewDelivery | undefined;
    }
  | { readonly kind: 'restart'; readonly now: Millis };

export interface DeliveryWriterOptions {
  readonly commit: GroupCommit;
  readonly seal: MessageSeal;
  readonly rows: DeliveryRows;
  readonly counters: DeliveryCounters;
  readonly events: RememberedEvents;
  readonly times: DeliveryTimes;
  readonly room: DeliveryRoom;
  readonly expiry: DeliveryExpiry;
  /** How long the row of a delivery of the route is kept after this end. */
  readonly keepFor: (route: string, end: DeliveryEnd) => Millis;
  /** A change is stored. */
  readonly onChanged: (claim: DeliveryClaim) => void;
  /** A delivery of the route waits here from now on. */
  readonly onWaiting: (route: string, place: WaitingPlace) => void;
  /** These have waited too long: that they are dead is stored. */
  readonly onExpired: (deliveries: readonly Omit<Delivery, 'state'>[]) => void;
  /** The end of a write is stored, with or without its callback on this route. */
  readonly onCallback: (route: string, isStored: boolean) => void;
  /** The changes of a transaction are stored. */
  readonly onAllStored: () => void;
}

interface PendingAdd {
  readonly delivery: NewDelivery;
  readonly onAdded: (result: AddResult) => void;
}

/** Rows that a step removes, and gives up, at most. Later steps remove the others. */
const MAX_REMOVED = 1000;

/** The changes of deliveries that are not stored yet. Those of a turn of the event loop cost one transaction. */
export class DeliveryWriter implements PendingChanges {
  readonly #options: DeliveryWriterOptions;
  #adds: PendingAdd[] = [];
  readonly #changes = new Map<DeliveryClaim, DeliveryChange>();
  /** Of the present transaction. */
  #results: AddResult[] = [];
  #waiting: (readonly [route: string, place: WaitingPlace])[] = [];
  #expired: Omit<Delivery, 'state'>[] = [];
  #callbacks: (readonly [route: string, isStored: boolean])[] = [];
  #hasFailed = false;
  /** A later step removes the rest of the rows whose time is over. */
  #isStepScheduled = false;

  constructor(options: DeliveryWriterOptions) {
    this.#options = options;
    options.commit.add(this);
    if (this.#isRemovalDue) options.commit.request();
  }

  add(delivery: NewDelivery, onAdded: (result: AddResult) => void): void {
    this.#adds.push({ delivery, onAdded });
    this.#options.commit.request();
  }

  /** Applied later if it cannot be stored now. The first change of a claim holds. */
  change(claim: DeliveryClaim, change: DeliveryChange): void {
    if (this.#changes.has(claim)) return;
    this.#changes.set(claim, change);
    this.#options.commit.request();
  }

  /** Changes that could not be stored yet. */
  get failed(): number {
    return this.#hasFailed ? this.#changes.size : 0;
  }

  get isEmpty(): boolean {
    return this.#adds.length === 0 && this.#changes.size === 0 && !this.#isRemovalDue;
  }

  apply(): void {
    const { counters, events, room, expiry, times } = this.#options;
    const now = times.now();
    this.#waiting = [];
    this.#expired = [];
    this.#callbacks = [];
    for (const each of [counters, events, room, expiry]) each.begin();
    if (this.#isRemovalDue) {
      events.removeOver(now, MAX_REMOVED);
      room.removeOver(now, MAX_REMOVED);
      expiry.endExpired(now, MAX_REMOVED, (row) => this.#expire(row, times.toWall(now)));
    }
    for (const [claim, change] of this.#changes) this.#applyChange(claim, change);
    this.#results = this.#adds.map(({ delivery }) => this.#applyAdd(delivery, now));
  }

  onStored(): void {
    const { counters, events, room, expiry, commit } = this.#options;
    const { onChanged, onWaiting, onExpired, onCallback, onAllStored } = this.#options;
    for (const each of [counters, events, room, expiry]) each.commit();
    this.#hasFailed = false;
    const [adds, results] = [this.#adds, this.#results];
    this.#adds = [];
    for (const claim of this.#changes.keys()) onChanged(claim);
    this.#changes.clear();
    for (const [route, place] of this.#waiting) onWaiting(route, place);
    if (this.#isRemovalDue) {
      this.#isStepScheduled = true;
      commit.nextStep(() => {
        this.#isStepScheduled = false;
        commit.request();
      });
    }
    if (this.#expired.length > 0) onExpired(this.#expired);
    for (const [route, isStored] of this.#callbacks) onCallback(route, isStored);
    for (const [i, { onAdded }] of adds.entries()) {
      const result = results[i];
      if (result !== undefined) onAdded(result);
    }
    onAllStored();
  }

  /** The client sends an addition again. The other changes are about what was sent, and stay. */
  onFailed(error: unknown): void {
    this.#hasFailed = true;
    const adds = this.#adds;
    this.#adds = [];
    const why = error instanceof Error ? error.message : String(error);
    for (const { onAdded } of adds) onAdded({ kind: 'unavailable', why });
  }

  get #isRemovalDue(): boolean {
    const { events, room, expiry, times } = this.#options;
    return !this.#isStepScheduled && Math.min(room.nextRemoval, events.nextEnd, expiry.next) <= times.now();
  }

  #applyChange(claim: DeliveryClaim, change: DeliveryChange): void {
    const { rows, expiry } = this.#options;
    const row = rows.get(claim.number);
    if (row === undefined) return;
    if (change.kind === 'restart') return this.#restart(row, change.now);
    const isCounted = change.kind === 'postpone' || change.isCounted;
    if (change.attempt !== undefined) rows.recordAttempt(row.number, change.attempt, isCounted);
    if (change.kind === 'end') {
      this.#end(row, change);
      const { callback } = change;
      if (callback === undefined) return;
      const { kind } = this.#applyAdd(callback, this.#options.times.now());
      return void this.#callbacks.push([callback.route, kind === 'stored']);
    }
    this.#waiting.push([claim.route, rows.postpone(row, change.until)]);
    expiry.onWaiting(row.waitsSince);
  }

  #expire(row: StoredDelivery, at: Millis): void {
    const { rows, keepFor } = this.#options;
    const attempt = { at, took: 0, status: undefined, reason: 'expired' };
    rows.recordAttempt(row.number, attempt, false);
    // A write may have been sent before.
    const end = row.delivery.kind === 'write' ? 'unknown' : 'dead';
    const keptFor = keepFor(row.delivery.route, end);
    this.#end(row, { kind: 'end', end, at, keptFor, attempt, isCounted: false });
    this.#expired.push(row.delivery);
  }

  #end({ number, code, size, delivery }: StoredDelivery, { end, at, keptFor, sealedResult }: EndChange): void {
    const { rows, counters, room, times } = this.#options;
    const { route, orderKey, sender } = delivery;
    rows.end(number, end, at, keptFor);
    counters.subtract(code, size, sender);
    const kept = size + (sealedResult === undefined ? 0 : rows.setResult(number, sealedResult));
    counters.add(STATE_CODES[end], kept, sender);
    room.onKept(times.toStored(at) + keptFor);
    if (orderKey === undefined || code !== STATE_CODES.waiting) return;
    const next = rows.unblockNext(route, orderKey, at);
    if (next === undefined) return;
    this.#waiting.push([route, next]);
    const unblocked = rows.get(next.number)?.size ?? 0;
    counters.subtract(STATE_CODES.blocked, unblocked, next.sender);
    counters.add(STATE_CODES.waiting, unblocked, next.sender);
  }

  #restart(row: StoredDelivery, now: Millis): void {
    const { rows, counters, expiry } = this.#options;
    const { number, code, size, delivery } = row;
    const { route, orderKey, sender } = delivery;
    const next = endOfCode(code) === undefined ? code : this.#firstCode(route, orderKey);
    const place = rows.restart(row, next, now);
    counters.subtract(code, size, sender);
    counters.add(next, size - rows.removeResult(number), sender);
    expiry.onWaiting(place.until);
    if (next === STATE_CODES.waiting) this.#waiting.push([route, place]);
  }

  #applyAdd(delivery: NewDelivery, now: Millis): AddResult {
    const { seal, rows, counters, events, room, expiry, times } = this.#options;
    const { id, route, sender, eventId, orderKey, message, duplicatesUntil } = delivery;
    const earlier = eventId === undefined ? undefined : events.find(route, eventId, now);
    // A write whose row was removed is sent again: its key protects it, and its client learns the outcome.
    const isDuplicate = earlier !== undefined && (delivery.kind === 'message' || rows.find(earlier) !== undefined);
    if (isDuplicate) return { kind: 'duplicate', id: earlier };
    const bytes = encodeDeliveryMessage(message);
    const size = bytes.length + SEAL_BYTES;
    if (!room.make(size, sender)) return { kind: 'full' };
    const code = this.#firstCode(route, orderKey);
    const place = rows.insert(delivery, code, seal.seal(id, bytes));
    if (place === undefined) return { kind: 'duplicate', id };
    counters.add(code, size, sender);
    expiry.onWaiting(place.until);
    if (eventId !== undefined) events.remember(route, eventId, id, times.toStored(duplicatesUntil));
    if (code === STATE_CODES.waiting) this.#waiting.push([route, place]);
    return { kind: 'stored' };
  }

  #firstCode(route: string, orderKey: string | undefined): (typeof OPEN_CODES)[number] {
    const isBlocked = orderKey !== undefined && this.#options.rows.hasOpen(route, orderKey);
    return isBlocked ? STATE_CODES.blocked : STATE_CODES.waiting;
  }
}
