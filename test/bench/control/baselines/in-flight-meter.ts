import type { CutCause } from '../../../../src/core/limits/limit-state.ts';
import type { FailedSend, RejectedSend } from '../../../../src/core/rate/failed-send.ts';
import type { Millis, Random } from '../../../../src/core/scalars.ts';
import type { Scenario } from '../../../../src/simulator/scenario.ts';
import { ControllerStore, ForgetfulClients } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { unqueued } from './adapt.ts';

/** A concurrency limit, updated by every response. */
export interface InFlightLimit {
  readonly limit: number;
  /** @param among in flight when it was sent, itself included; 0 if unknown */
  update(rtt: Millis, among: number, didDrop: boolean, at: SampleContext): void;
}

export interface SampleContext {
  readonly now: Millis;
  /** Now, the request of the response included. */
  readonly inFlight: number;
}

/** Admits a request while fewer than the limit are in flight. A 429 and an upstream failure count as drops. */
class InFlightMeter extends PassingMeter {
  readonly #limit: InFlightLimit;

  constructor(limit: InFlightLimit) {
    super();
    this.#limit = limit;
  }

  override delay(): Millis {
    return this.inFlight < this.#limit.limit ? 0 : Number.POSITIVE_INFINITY;
  }

  override expectedDelay(): Millis {
    return 0;
  }

  override onEnded(): boolean {
    this.inFlight -= 1;
    return true;
  }

  override onAccepted(sentAt: Millis, among: number, now: Millis): undefined {
    this.#limit.update(now - sentAt, among, false, { now, inFlight: this.inFlight });
  }

  override onRejected({ sentAt, inFlightAtSend }: RejectedSend, now: Millis): CutCause | undefined {
    this.#limit.update(now - sentAt, inFlightAtSend, true, { now, inFlight: this.inFlight });
    return 'places';
  }

  override onFailed({ sentAt }: FailedSend, now: Millis): CutCause | undefined {
    this.#limit.update(now - sentAt, 0, true, { now, inFlight: this.inFlight });
    return undefined;
  }
}

/** A controller of the number in flight, shared by all clients. Requests beyond it are refused, or queued as everywhere. */
export function inFlightController(
  name: string,
  makeLimit: (random: Random) => InFlightLimit,
  { isQueued = false }: { readonly isQueued?: boolean } = {},
): Controller {
  return {
    name,
    adapt: (scenario: Scenario) => (isQueued ? scenario : unqueued(scenario)),
    makeStore: ({ policy }, random, listen) =>
      new ControllerStore({
        policy,
        listen,
        makeMeter: () => new InFlightMeter(makeLimit(random)),
        clients: new ForgetfulClients(100_000, listen),
      }),
  };
}
