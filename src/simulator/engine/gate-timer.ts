import type { Gate } from '../../core/admission/gate.ts';
import type { ScheduledEvent, Simulator } from './simulator.ts';

/** The timer of one gate. An earlier wake replaces a later one; a superfluous wake has no effect. */
export class GateTimer implements ScheduledEvent {
  readonly isProxyEvent = true;
  readonly #simulator: Simulator;
  readonly #gate: Gate;
  #at = Number.POSITIVE_INFINITY;

  constructor(simulator: Simulator, gate: Gate) {
    this.#simulator = simulator;
    this.#gate = gate;
  }

  rearm(): void {
    const at = this.#gate.nextWake();
    if (at === undefined || at >= this.#at) return;
    this.#at = Math.max(at, this.#simulator.now());
    this.#simulator.schedule(this.#at, this);
  }

  run(): void {
    const now = this.#simulator.now();
    if (now < this.#at) return;
    this.#at = Number.POSITIVE_INFINITY;
    this.#gate.wake(now);
    this.rearm();
  }
}
