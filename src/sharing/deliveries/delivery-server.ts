import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import { answerDeliveryCall } from './answer-delivery-call.ts';
import type { DeliveryOperation, DeliveryReply } from './delivery-protocol.ts';
import { WorkerClaims, type WorkerClaimsParts } from './worker-claims.ts';

export interface DeliveryServerParts extends Omit<WorkerClaimsParts, 'wake'> {
  readonly send: (worker: number, replies: readonly DeliveryReply[]) => void;
}

/** Keeps the deliveries of several workers. */
export class DeliveryServer {
  readonly #parts: DeliveryServerParts;
  readonly #store: DeliveryStore;
  readonly #claims: WorkerClaims;
  /** Replies that are sent together. */
  readonly #outboxes = new Map<number, DeliveryReply[]>();

  constructor(parts: DeliveryServerParts) {
    this.#parts = parts;
    const { store } = parts;
    this.#store = store;
    this.#claims = new WorkerClaims({ ...parts, wake: (worker) => this.#reply(worker, { type: 'due' }) });
  }

  join(worker: number): void {
    this.#claims.join(worker);
  }

  /** A worker has ended: what it had taken is sent by others. */
  leave(worker: number): void {
    this.#claims.leave(worker);
  }

  /** The store has changed: see `WorkerClaims.onDue`. */
  onDue(route: string): void {
    this.#claims.onDue(route);
  }

  /** Operations of a worker that has ended are too late: `leave` has taken their place. */
  onOperations(worker: number, operations: readonly DeliveryOperation[]): void {
    if (!this.#claims.has(worker)) return;
    this.#claims.onMessage(
      worker,
      operations.some((operation) => operation.do === 'take'),
    );
    for (const operation of operations) this.#perform(worker, operation);
  }

  stop(): void {
    this.#claims.stop();
  }

  #perform(worker: number, operation: DeliveryOperation): void {
    switch (operation.do) {
      case 'add': {
        const { query, delivery } = operation;
        return this.#store.add(delivery, (result) => this.#reply(worker, { type: 'added', query, result }));
      }
      case 'take':
        return void this.#take(worker, operation);
      case 'postpone':
        if (this.#claims.release(worker, operation.input[0])) this.#store.postpone(...operation.input);
        return undefined;
      case 'end':
        if (this.#claims.release(worker, operation.input[0])) this.#store.end(...operation.input);
        return undefined;
      case 'call':
        return void answerDeliveryCall(this.#store, operation).then((reply) => this.#reply(worker, reply));
      case 'stop':
        return this.#claims.stopTaking(worker);
    }
  }

  async #take(
    worker: number,
    { query, route, now, limit }: Extract<DeliveryOperation, { readonly do: 'take' }>,
  ): Promise<void> {
    const taken = await this.#claims.take(worker, route, now, limit);
    this.#reply(worker, { type: 'taken', query, taken });
  }

  /** Sent together with the other replies of this callback of the event loop, such as those of a commit. */
  #reply(worker: number, reply: DeliveryReply): void {
    const outbox = this.#outboxes.get(worker);
    if (outbox !== undefined) return void outbox.push(reply);
    const replies = [reply];
    this.#outboxes.set(worker, replies);
    this.#parts.soon(() => {
      this.#outboxes.delete(worker);
      this.#parts.send(worker, replies);
    });
  }
}
