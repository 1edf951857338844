import type { Ticket } from '../../core/admission/ticket.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { StalledClient, StalledClients } from './stalled-clients.ts';
import { GRACE_PERIOD } from './stalled-clients.ts';

/** An exchange whose client keeps an upstream connection busy but reads nothing of its response, or sends nothing of its upload. */
export class ClientStall implements StalledClient {
  /** Infinity while the proxy does not wait for the client. */
  stalledSince: Millis = Number.POSITIVE_INFINITY;
  /** For how long it may stall before it gives way. */
  patience: Millis = GRACE_PERIOD;
  readonly upstream: string;
  readonly addressGroup: string;
  readonly ticket: HeldPlaces;
  readonly #registry: StalledClients;
  readonly #clock: Clock;
  readonly #onAbort: () => void;
  #isListed = false;

  /** @param onAbort must end the exchange: others wait for its connection, or its place */
  constructor({ upstream, addressGroup, ticket, registry, clock }: ClientStallOptions, onAbort: () => void) {
    this.upstream = upstream;
    this.addressGroup = addressGroup;
    this.ticket = ticket;
    this.#registry = registry;
    this.#clock = clock;
    this.#onAbort = onAbort;
  }

  get givesWayAt(): Millis {
    return this.stalledSince + this.patience;
  }

  holdsPlaceOf(limit: Limit): boolean {
    return this.ticket.inFlightLimits.includes(limit);
  }

  /** The proxy waits for the client. Stalls are mostly short and frequent, so the exchange stays registered after the first. */
  start(): void {
    this.stalledSince = this.#clock.now();
    if (this.#isListed) return;
    this.#isListed = true;
    this.#registry.add(this);
  }

  /** The client has read or sent. */
  stop(): void {
    this.stalledSince = Number.POSITIVE_INFINITY;
  }

  /** The exchange is over. */
  remove(): void {
    if (this.#isListed) this.#registry.remove(this);
  }

  abort(): void {
    this.#onAbort();
  }
}

/** The limits at which the exchange counts as in flight. */
export type HeldPlaces = Pick<Ticket, 'inFlightLimits'>;

export interface ClientStallOptions {
  readonly upstream: string;
  /** The client, or all clients of one address. */
  readonly addressGroup: string;
  readonly ticket: HeldPlaces;
  readonly registry: StalledClients;
  readonly clock: Clock;
}
