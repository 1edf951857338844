import type { DeliveryFilter, DeliveryTotals } from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryMessage, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import type { MessageSeal } from '../message-seal.ts';
import type { DeliveryClaims } from './delivery-claims.ts';
import type { DeliveryCounters } from './delivery-counters.ts';
import { decodeDeliveryMessage } from './delivery-message-codec.ts';
import { decodeDeliveryResult } from './delivery-result-codec.ts';
import type { DeliveryRows, RowOrder } from './delivery-rows.ts';
import type { StoredDelivery } from './stored-delivery.ts';
import { ALL_CODES, endOfCode, OPEN_CODES, STATE_CODES } from './delivery-tables.ts';

export interface DeliveryReaderOptions {
  readonly rows: DeliveryRows;
  readonly counters: DeliveryCounters;
  readonly claims: DeliveryClaims;
  readonly seal: MessageSeal;
  readonly resultSeal: MessageSeal;
}

type StateKind = Delivery['state']['kind'];

/** Reads deliveries as they are stored, and as this process has claimed them. */
export class DeliveryReader {
  readonly #options: DeliveryReaderOptions;
  /** All that have or had deliveries. */
  readonly #routes: Set<string>;

  constructor(options: DeliveryReaderOptions) {
    this.#options = options;
    this.#routes = new Set(options.rows.routes());
  }

  /** A delivery of the route is stored. */
  addRoute(route: string): void {
    this.#routes.add(route);
  }

  get routes(): Iterable<string> {
    return this.#routes;
  }

  /** All but `oldestAt`, which is read from the database. */
  get totals(): Omit<DeliveryTotals, 'oldestAt'> {
    const { counters, claims } = this.#options;
    const { sending } = claims;
    const open = counters.count(STATE_CODES.waiting) + counters.count(STATE_CODES.blocked);
    const ends = {
      delivered: counters.count(STATE_CODES.delivered),
      dead: counters.count(STATE_CODES.dead),
      canceled: counters.count(STATE_CODES.canceled),
      unknown: counters.count(STATE_CODES.unknown),
    };
    return { counts: { waiting: open - sending, sending, ...ends }, bytes: counters.bytes };
  }

  /** When the first delivery was accepted that is not over. */
  oldestAt(): Millis | undefined {
    const { rows } = this.#options;
    let oldest: Millis | undefined;
    for (const route of this.#routes) {
      for (const code of OPEN_CODES) {
        const [number] = rows.list('oldest', route, code, 0, 1);
        const row = number === undefined ? undefined : rows.get(number);
        if (row !== undefined) oldest = Math.min(oldest ?? Infinity, row.delivery.acceptedAt);
      }
    }
    return oldest;
  }

  list({ states, route, order = 'oldest', after, limit }: DeliveryFilter): readonly Delivery[] {
    const { rows } = this.#options;
    const wanted: ReadonlySet<StateKind> | undefined = states && new Set(states);
    const isWanted = (kind: StateKind): boolean => wanted?.has(kind) ?? true;
    const found: Delivery[] = [];
    const from = after === undefined ? START_OF[order] : rows.numberOf(after, order);
    for (const number of this.#candidates(route, isWanted, { order, from, limit })) {
      if (found.length >= limit) break;
      const row = rows.get(number);
      const delivery = row && this.toDelivery(row);
      if (delivery !== undefined && isWanted(delivery.state.kind)) found.push(delivery);
    }
    return found;
  }

  toDelivery({ number, code, until, delivery }: StoredDelivery): Delivery {
    const end = endOfCode(code);
    if (end !== undefined) return { ...delivery, state: { kind: end, at: until } };
    const since = this.#options.claims.sendingSince(number);
    return { ...delivery, state: since === undefined ? { kind: 'waiting', until } : { kind: 'sending', since } };
  }

  /** Undefined if it cannot be decrypted or decoded. */
  readMessage({ number, delivery: { id } }: StoredDelivery): DeliveryMessage | undefined {
    const { rows, seal } = this.#options;
    const sealed = rows.sealedMessage(number);
    const bytes = sealed && seal.open(id, sealed);
    return bytes && decodeDeliveryMessage(bytes);
  }

  /** Undefined if there is none, or it cannot be decrypted or decoded. */
  readResult({ number, delivery: { id } }: StoredDelivery): DeliveryResult | undefined {
    const { rows, resultSeal } = this.#options;
    const sealed = rows.sealedResult(number);
    const bytes = sealed && resultSeal.open(id, sealed);
    return bytes && decodeDeliveryResult(bytes);
  }

  /** The numbers of deliveries that may be wanted, in order: at least `limit` that are, if there are so many. */
  #candidates(
    route: string | undefined,
    isWanted: (kind: StateKind) => boolean,
    { order, from, limit }: RowPage,
  ): readonly number[] {
    const { rows, claims } = this.#options;
    const numbers = new Set<number>();
    for (const code of ALL_CODES) {
      if (!isWanted(endOfCode(code) ?? 'waiting')) continue;
      for (const each of route === undefined ? this.#routes : [route]) {
        for (const number of rows.list(order, each, code, from, limit + claims.size)) numbers.add(number);
      }
    }
    const sending = isWanted('sending') ? claims.sendingNumbers(route) : [];
    const sign = order === 'newest' ? -1 : 1;
    for (const number of sending) if (sign * (number - from) > 0) numbers.add(number);
    return [...numbers].toSorted((a, b) => sign * (a - b));
  }
}

interface RowPage {
  readonly order: RowOrder;
  /** Only those after this number. */
  readonly from: number;
  readonly limit: number;
}

const START_OF: Readonly<Record<RowOrder, number>> = { oldest: 0, newest: Infinity };
