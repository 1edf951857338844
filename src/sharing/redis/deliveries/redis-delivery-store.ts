import {
  type AddResult,
  DeliveriesUnavailable,
  type DeliveryFilter,
  type DeliveryStore,
  type DeliveryTotals,
  type DueDelivery,
  type NewDelivery,
  type TakenDeliveries,
} from '../../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryAttempt, DeliveryMessage, DeliveryResult } from '../../../core/delivery/delivery.ts';
import type { ResourceBound } from '../../../core/overload/resource-bound.ts';
import type { Millis } from '../../../core/scalars.ts';
import { decodeDeliveryMessage, encodeDeliveryMessage } from '../../../store/deliveries/delivery-message-codec.ts';
import { decodeDeliveryResult, encodeDeliveryResult } from '../../../store/deliveries/delivery-result-codec.ts';
import { MessageSeal } from '../../../store/message-seal.ts';
import type { RedisResult } from '../redis-requests.ts';
import { ClaimedDeliveries, type ClaimedChange, type ClaimedEnd, type RedisClaim } from './claimed-deliveries.ts';
import { WaitingDeliveries, endWithoutAttempt } from './waiting-deliveries.ts';
import { type AdditionReply, type DeliveryAddition, encodeAddition, readAddition } from './delivery-addition.ts';
import { type DeliveryScriptCall, DeliveryCommands } from './delivery-commands.ts';
import { decodeFields } from './delivery-fields.ts';
import { encodeFilter } from './delivery-filter.ts';
import { DeliveryPoll } from './delivery-poll.ts';
import type { RedisDeliveryStoreParts } from './redis-delivery-store-parts.ts';
import { readTaken, type TakenReply } from './taken-reply.ts';

/** How often an addition is sent whose reply was lost. */
const MAX_ADDS = 3;
/** Before a write is due again that this replica has claimed while an attempt of an earlier claim is in progress. */
const RELEASED_FOR: Millis = 1000;

/**
 * Deliveries in Redis, which replicas share: each replica sends what it claims. A claim is a lease with a name of its own. A replica that
 * does not renew it loses the delivery, and can change nothing of it any more.
 */
export class RedisDeliveryStore implements DeliveryStore {
  readonly #parts: RedisDeliveryStoreParts;
  readonly #commands: DeliveryCommands;
  readonly #seal: MessageSeal;
  readonly #resultSeal: MessageSeal;
  readonly #claimed: ClaimedDeliveries;
  readonly #waiting: WaitingDeliveries;
  readonly #poll: DeliveryPoll;
  #isClosed = false;

  constructor(parts: RedisDeliveryStoreParts) {
    const { secret, schedule, onDue, maxAge = () => Number.POSITIVE_INFINITY } = parts;
    this.#parts = parts;
    const commands = (this.#commands = new DeliveryCommands(parts));
    this.#seal = new MessageSeal(secret, 'delivery');
    this.#resultSeal = new MessageSeal(secret, 'delivery result');
    this.#claimed = new ClaimedDeliveries({
      ...{ commands, schedule, onDue },
      onCallback: (callback, reply) => this.#onCallback(callback, readAddition(reply)),
    });
    this.#waiting = new WaitingDeliveries({ ...parts, commands });
    this.#poll = new DeliveryPoll({
      ...{ ...parts, commands, maxAge, onDue: () => onDue(undefined) },
      onTooOld: (deliveries, since) => this.#waiting.expire(deliveries, since),
    });
  }

  get bounds(): readonly ResourceBound[] {
    return this.#poll.bounds;
  }

  get totals(): DeliveryTotals {
    return this.#poll.totals;
  }

  /** Reads the totals, and removes what is over. Resolves once Redis has responded, or has not in time. */
  poll(): Promise<void> {
    return this.#poll.poll();
  }

  /** Releases what is claimed. Resolves once that is stored, or Redis does not respond. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#poll.close();
    return this.#claimed.close(this.#parts.wallClock());
  }

  add(delivery: NewDelivery, onAdded: (result: AddResult) => void): void {
    this.#poll.start();
    const { id, args } = this.#encode(delivery);
    this.#add({ script: 'tidegateAddDelivery', keys: [this.#commands.keyOf(id)], args }, delivery, 1, onAdded);
  }

  #encode(delivery: NewDelivery): DeliveryAddition {
    const sealed = this.#seal.seal(delivery.id, encodeDeliveryMessage(delivery.message));
    return encodeAddition(delivery, sealed, this.#parts, this.#parts.wallClock());
  }

  /** @param nth from 1. After a reply that was lost, the delivery may be a duplicate of itself: it is stored */
  #add(call: DeliveryScriptCall, delivery: NewDelivery, nth: number, onAdded: (result: AddResult) => void): void {
    this.#commands.run(call, (result) => {
      if (result.kind === 'lost') {
        if (result.isUnsent || nth === MAX_ADDS) {
          const certainty = result.isUnsent && nth === 1 ? {} : { mayBeStored: true };
          onAdded({ kind: 'unavailable', why: this.#commands.problem, ...certainty });
        } else this.#add(call, delivery, nth + 1, onAdded);
        return;
      }
      const reply = readAddition(result.response);
      this.#countReached(reply);
      if (reply?.kind === 'full') return onAdded({ kind: 'full' });
      if (reply?.kind === 'duplicate' && !(nth > 1 && reply.id === delivery.id)) return onAdded(reply);
      onAdded({ kind: 'stored' });
      this.#parts.onDue(delivery.route);
    });
  }

  #countReached(reply: AdditionReply | undefined): void {
    if (reply?.kind === 'full') this.#poll.onReached(reply.by);
    if (reply?.kind === 'stored' && reply.hasForgotten) this.#poll.onReached('events');
  }

  #onCallback({ route }: DeliveryAddition, reply: AdditionReply | undefined): void {
    this.#countReached(reply);
    const isStored = reply?.kind === 'stored';
    this.#parts.onCallback?.(route, isStored);
    if (isStored) this.#parts.onDue(route);
  }

  async takeDue(route: string, now: Millis, limit: number, concurrency = Infinity): Promise<TakenDeliveries> {
    this.#poll.start();
    if (this.#isClosed || this.#claimed.hasFailed) return NONE_TAKEN;
    const call: DeliveryScriptCall = {
      ...{ script: 'tidegateTakeDeliveries', isBinary: true },
      args: [
        String(now),
        String(limit),
        this.#parts.owner,
        route,
        Number.isFinite(concurrency) ? String(concurrency) : '',
      ],
      onLate: (reply) => {
        for (const { delivery, claim } of readTaken(reply)?.deliveries ?? []) {
          this.#claimed.release({ id: delivery.id, route, claim }, now);
        }
      },
    };
    const result = await this.#run(call);
    const taken = result.kind === 'lost' ? undefined : readTaken(result.response);
    if (taken === undefined) return NONE_TAKEN;
    const deliveries = taken.deliveries.flatMap((each) => this.#open(each, now) ?? []);
    return { deliveries, nextDueAt: taken.nextDueAt };
  }

  /** Undefined if this replica still sends it, or if the message cannot be read: then the delivery ends. */
  #open({ delivery, claim: name, sealed }: TakenReply['deliveries'][number], now: Millis): DueDelivery | undefined {
    const claim = { id: delivery.id, route: delivery.route, claim: name };
    // Its lease has ended while this process was suspended.
    const isSending = this.#claimed.get(delivery.id) !== undefined;
    if (isSending && delivery.kind === 'write') {
      // Another replica may have sent it since: the attempt in progress does not know how that ended, so what it reports is ignored.
      this.#claimed.release(claim, now + RELEASED_FOR);
      return undefined;
    }
    this.#claimed.add(claim);
    if (isSending) return undefined; // the attempt in progress goes on with the new claim
    const message = this.#readMessage(delivery.id, sealed);
    if (message !== undefined) return { delivery, message };
    const attempt = { at: now, took: 0, status: undefined, reason: 'unreadable' };
    const end = endWithoutAttempt(delivery);
    this.#end(claim, end, { at: now, attempt, isCounted: false });
    this.#parts.onUnreadable(delivery, end);
    return undefined;
  }

  postpone(id: string, until: Millis, attempt: DeliveryAttempt | undefined): void {
    const claim = this.#claimed.get(id);
    if (claim !== undefined) this.#claimed.change(claim, { at: until, attempt, isCounted: true });
  }

  end(...[id, end, at, attempt, result, callback]: Parameters<DeliveryStore['end']>): void {
    const claim = this.#claimed.get(id);
    if (claim === undefined) return;
    const sealedResult = result && this.#resultSeal.seal(id, encodeDeliveryResult(result));
    const stored = { sealedResult, callback: callback && this.#encode(callback) };
    this.#end(claim, end, { at, attempt, isCounted: true }, stored);
  }

  #end(claim: RedisClaim, state: ClaimedEnd['state'], change: ClaimedChange, stored = NOTHING_STORED): void {
    const keptUntil = change.at + this.#parts.keepFor(claim.route, state);
    this.#claimed.change(claim, { ...change, end: { state, keptUntil, ...stored } });
  }

  async find(id: string): Promise<Delivery | undefined> {
    return decodeFields(id, this.#responseOf(await this.#commands.fields(id)));
  }

  async list(filter: DeliveryFilter): Promise<readonly Delivery[]> {
    const reply = this.#responseOf(await this.#run({ script: 'tidegateListDeliveries', args: encodeFilter(filter) }));
    const found = Array.isArray(reply) ? (reply as readonly (readonly unknown[])[]) : [];
    return found.flatMap(([id, fields]) => decodeFields(String(id), fields) ?? []);
  }

  async message(id: string): Promise<DeliveryMessage | undefined> {
    return this.#readMessage(id, this.#responseOf(await this.#commands.bytes(id, 'message')) ?? undefined);
  }

  async result(id: string): Promise<DeliveryResult | undefined> {
    const sealed = this.#responseOf(await this.#commands.bytes(id, 'result'));
    const bytes = sealed === null ? undefined : this.#resultSeal.open(id, sealed);
    return bytes && decodeDeliveryResult(bytes);
  }

  async retry(id: string, now: Millis): Promise<boolean> {
    const call = {
      script: 'tidegateRetryDelivery',
      keys: [this.#commands.keyOf(id)],
      args: [id, String(now)],
    } as const;
    return this.#hasChanged(this.#responseOf(await this.#run(call)));
  }

  async cancel(id: string, now: Millis): Promise<boolean> {
    const route = (await this.find(id))?.route;
    if (route === undefined) return false;
    return this.#hasChanged(this.#responseOf(await this.#waiting.end({ id, route }, 'canceled', now)));
  }

  #hasChanged(reply: unknown): boolean {
    // The next one with its order key, or itself.
    if (reply === 'stored') this.#parts.onDue(undefined);
    return reply === 'stored';
  }

  #readMessage(id: string, sealed: Buffer | undefined): DeliveryMessage | undefined {
    const bytes = sealed && this.#seal.open(id, sealed);
    return bytes && decodeDeliveryMessage(bytes);
  }

  #run(call: DeliveryScriptCall): Promise<RedisResult<unknown>> {
    this.#poll.start();
    return new Promise((resolve) => this.#commands.run(call, resolve));
  }

  /** @throws DeliveriesUnavailable */
  #responseOf<T>(result: RedisResult<T>): T {
    if (result.kind === 'response') return result.response;
    throw new DeliveriesUnavailable(`Redis does not respond (${this.#commands.problem}).`);
  }
}

const NOTHING_STORED: Pick<ClaimedEnd, 'sealedResult' | 'callback'> = { sealedResult: undefined, callback: undefined };
const NONE_TAKEN: TakenDeliveries = { deliveries: [], nextDueAt: undefined };
