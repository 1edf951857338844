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
  readonly #registry: StalledClients;
  readonly #clock: Clock;
  readonly #onAbort: () => void;
  #isListed = false;

  /** @param onAbort must end the exchange: others wait for its connection */
  constructor({ upstream, addressGroup, registry, clock }: ClientStallOptions, onAbort: () => void) {
    this.upstream = upstream;
    this.addressGroup = addressGroup;
    this.#registry = registry;
    this.#clock = clock;
    this.#onAbort = onAbort;
  }

  get givesWayAt(): Millis {
    return this.stalledSince + this.patience;
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

export interface ClientStallOptions {
  readonly upstream: string;
  /** The client, or all clients of one address. */
  readonly addressGroup: string;
  readonly registry: StalledClients;
  readonly clock: Clock;
}
