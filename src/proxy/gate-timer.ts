import type { Gate } from '../policy/gate.ts';
import type { Clock, Millis } from '../policy/types.ts';

/** Wakes the gate when it has something to do. One timer for all who wait. */
export class GateTimer {
  readonly #gate: Gate;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  #at: Millis = Number.POSITIVE_INFINITY;

  constructor(gate: Gate, clock: Clock) {
    this.#gate = gate;
    this.#clock = clock;
  }

  rearm(): void {
    const at = this.#gate.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at === this.#at || (at > this.#at && this.#timer !== undefined)) return; // an early wake does no harm
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    // Who waits has a connection, which keeps this process: a timer that nobody waits for any more must not.
    this.#timer = setTimeout(this.#wake, Math.max(0, Math.ceil(at - this.#clock.now()))).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
    this.#gate.wake(this.#clock.now());
    this.rearm();
  };
}
