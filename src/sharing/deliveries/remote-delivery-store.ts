import {
  type AddResult,
  DeliveriesUnavailable,
  type DeliveryFilter,
  type DeliveryStore,
  type DeliveryTotals,
  type NewDelivery,
  type TakenDeliveries,
} from '../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryMessage, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import {
  type CalledMethod,
  type DeliveryOperation,
  type DeliveryCalls,
  type DeliveryReply,
  isResultOfCall,
  NOTHING_STORED,
  type OperationReply,
} from './delivery-protocol.ts';

export interface RemoteDeliveryStoreParts {
  readonly send: (operations: readonly DeliveryOperation[]) => void;
  /** Calls `run` at the end of this turn of the event loop. */
  readonly schedule: (run: () => void) => void;
}

/** An operation that has no reply yet. */
interface PendingOperation {
  readonly onReply: (reply: OperationReply) => void;
  /** The channel has closed: there will be none. */
  readonly onLost: () => void;
}

/** Deliveries that another process keeps: of a worker, its primary. */
export class RemoteDeliveryStore implements DeliveryStore {
  readonly #parts: RemoteDeliveryStoreParts;
  readonly #pending = new Map<number, PendingOperation>();
  #outbox: DeliveryOperation[] = [];
  #isFlushScheduled = false;
  #isKeeperGone = false;
  #query = 0;
  #onDue: (() => void) | undefined;

  constructor(parts: RemoteDeliveryStoreParts) {
    this.#parts = parts;
  }

  /** The keeper reports them. */
  get bounds(): readonly ResourceBound[] {
    return [];
  }

  /** The keeper reports them: nothing is stored here. */
  get totals(): DeliveryTotals {
    return NOTHING_STORED;
  }

  add(delivery: NewDelivery, onAdded: (result: AddResult) => void): void {
    const onLost = (): void => onAdded({ kind: 'unavailable', why: LOST, mayBeStored: true });
    if (this.#isKeeperGone) return this.#parts.schedule(() => onAdded({ kind: 'unavailable', why: LOST }));
    const query = this.#expect({
      onReply: (reply) => (reply.type === 'added' ? onAdded(reply.result) : onLost()),
      onLost,
    });
    this.#operate({ do: 'add', query, delivery });
  }

  takeDue(route: string, now: Millis, limit: number): Promise<TakenDeliveries> {
    if (this.#isKeeperGone) return Promise.resolve(NONE_TAKEN);
    return new Promise((resolve) => {
      const query = this.#expect({
        onReply: (reply) => resolve(reply.type === 'taken' ? reply.taken : NONE_TAKEN),
        onLost: () => resolve(NONE_TAKEN),
      });
      this.#operate({ do: 'take', query, route, now, limit });
    });
  }

  postpone(...input: Parameters<DeliveryStore['postpone']>): void {
    this.#operate({ do: 'postpone', input });
  }

  end(...input: Parameters<DeliveryStore['end']>): void {
    this.#operate({ do: 'end', input });
  }

  find(id: string): Promise<Delivery | undefined> {
    return this.#call('find', [id]);
  }

  list(filter: DeliveryFilter): Promise<readonly Delivery[]> {
    return this.#call('list', [filter]);
  }

  message(id: string): Promise<DeliveryMessage | undefined> {
    return this.#call('message', [id]);
  }

  result(id: string): Promise<DeliveryResult | undefined> {
    return this.#call('result', [id]);
  }

  retry(id: string, now: Millis): Promise<boolean> {
    return this.#call('retry', [id, now]);
  }

  cancel(id: string, now: Millis): Promise<boolean> {
    return this.#call('cancel', [id, now]);
  }

  /** The keeper calls for takes from now on: see `WorkerWakes`. @param run deliveries may be due */
  onDue(run: () => void): void {
    this.#onDue = run;
  }

  /** This process takes no more deliveries: the keeper calls others. */
  stopTaking(): void {
    this.#operate({ do: 'stop' });
  }

  onReplies(replies: readonly DeliveryReply[]): void {
    for (const reply of replies) {
      if (reply.type === 'due') this.#onDue?.();
      else {
        const pending = this.#pending.get(reply.query);
        this.#pending.delete(reply.query);
        pending?.onReply(reply);
      }
    }
  }

  /** No more replies arrive. What was added last may be stored all the same. */
  onKeeperGone(): void {
    this.#isKeeperGone = true;
    this.#outbox = [];
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { onLost } of pending) onLost();
  }

  /** Sends the operations of this turn now. */
  flush(): void {
    this.#isFlushScheduled = false;
    if (this.#outbox.length === 0) return;
    const operations = this.#outbox;
    this.#outbox = [];
    this.#parts.send(operations);
  }

  #call<K extends CalledMethod>(method: K, input: DeliveryCalls[K]['input']): Promise<DeliveryCalls[K]['result']> {
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => reject(new DeliveriesUnavailable(why));
      if (this.#isKeeperGone) return fail(LOST);
      const query = this.#expect({
        onReply: (reply) => {
          if (isResultOfCall(method, reply)) resolve(reply.result);
          else fail(reply.type === 'unavailable' ? reply.why : LOST);
        },
        onLost: () => fail(LOST),
      });
      this.#operate({ do: 'call', query, method, input });
    });
  }

  #expect(pending: PendingOperation): number {
    this.#query += 1;
    this.#pending.set(this.#query, pending);
    return this.#query;
  }

  #operate(operation: DeliveryOperation): void {
    if (this.#isKeeperGone) return; // the next process repeats the attempt that has ended
    this.#outbox.push(operation);
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    this.#parts.schedule(() => this.flush());
  }
}

const LOST = 'The connection to the primary process, which stores deliveries, is closed.';
const NONE_TAKEN: TakenDeliveries = { deliveries: [], nextDueAt: undefined };
