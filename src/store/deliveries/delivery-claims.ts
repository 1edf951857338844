import type { Millis } from '../../core/scalars.ts';
import type { DeliveryClient } from './due-clients.ts';

/** A delivery that cannot be claimed, ended or retried by others, until its change is stored. */
export interface DeliveryClaim extends DeliveryClient {
  readonly id: string;
  readonly number: number;
  readonly route: string;
  /** When it began to be sent, on the wall clock; undefined if it is not. */
  readonly since: Millis | undefined;
}

/** The deliveries that this process works on. Only in memory, so that a process that is killed leaves them waiting. */
export class DeliveryClaims {
  readonly #byId = new Map<string, DeliveryClaim>();
  readonly #byNumber = new Map<number, DeliveryClaim>();
  #sending = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** How many are being sent. */
  get sending(): number {
    return this.#sending;
  }

  get(id: string): DeliveryClaim | undefined {
    return this.#byId.get(id);
  }

  isClaimed(number: number): boolean {
    return this.#byNumber.has(number);
  }

  /** When it began to be sent. */
  sendingSince(number: number): Millis | undefined {
    return this.#byNumber.get(number)?.since;
  }

  /** The numbers of those of a route, or of all, that are being sent. */
  sendingNumbers(route: string | undefined): number[] {
    return [...this.#byNumber.values()]
      .filter((claim) => claim.since !== undefined && (route === undefined || claim.route === route))
      .map(({ number }) => number);
  }

  add(claim: DeliveryClaim): void {
    this.#byId.set(claim.id, claim);
    this.#byNumber.set(claim.number, claim);
    if (claim.since !== undefined) this.#sending += 1;
  }

  release(claim: DeliveryClaim): void {
    if (!this.#byId.delete(claim.id)) return;
    this.#byNumber.delete(claim.number);
    if (claim.since !== undefined) this.#sending -= 1;
  }
}
