import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Reporter, Sending } from '../protocol/authoritative-limit.ts';
import { Sendings } from './sent-requests.ts';
import type { Terms } from './worker-protocol.ts';

/** A number that no two leaseholders of one lender have, not even one after the other. */
export type HolderId = number;

/** For so long the clients that were told of are believed to wait. */
const CLIENTS_KEPT: Millis = 200;

/** What one leaseholder has of one limit, and what it wants. */
export class Account implements Reporter<HolderId> {
  readonly holder: HolderId;
  /** Tokens wanted and not lent. */
  want = 0;
  /** Of who waits there, above 0. */
  weight = 1;
  /** As a flow's in a fair queue. */
  tag = 0;
  /** Lent in all. */
  granted = 0;
  /** Lent, and neither spent nor given back. */
  lent = 0;
  inFlight = 0;
  /** The epoch that it knows of. */
  epoch: number;
  heardAt: Millis;
  told: Terms | undefined = undefined;
  /** The parts that it has been told of, in a form to compare. */
  toldParts = '';
  /** The times of tokens that are being lent to it. */
  slots: Millis[] = [];
  /** Made when it first sends: there may be an account for each client. */
  #sendings: Sendings | undefined;
  #clients: readonly string[] = [];
  #clientsAt = Number.NEGATIVE_INFINITY;

  constructor(holder: HolderId, epoch: number, now: Millis) {
    this.holder = holder;
    this.epoch = epoch;
    this.heardAt = now;
  }

  /** 0 while nobody waits there. */
  get activeWeight(): number {
    return this.want > 0 || this.slots.length > 0 ? this.weight : 0;
  }

  lend(slot: Millis): void {
    this.slots.push(slot);
    this.want -= 1;
    this.granted += 1;
    this.lent += 1;
  }

  noteClients(clients: readonly string[], now: Millis): void {
    this.#clients = clients;
    this.#clientsAt = now;
  }

  /** Those believed to wait there. */
  clients(now: Millis): readonly string[] {
    return now - this.#clientsAt < CLIENTS_KEPT ? this.#clients : [];
  }

  noteSending(serial: number, sending: Sending): void {
    this.#sendings ??= new Sendings();
    this.#sendings.note(serial, sending, this.inFlight);
  }

  takeSending(serial: number): Sending | undefined {
    return this.#sendings?.take(serial);
  }

  /** When it was, nobody asks here: what is in flight is told of at once. */
  noteEnd(): void {}

  findSending(sentAt: Millis): Sending | undefined {
    return this.#sendings?.find(sentAt);
  }
}
