import type { Gate } from '../../core/admission/gate.ts';
import type { Due, World } from './simulator.ts';

/** One timer for a gate: an earlier wake replaces a later one, and a late one does no harm. */
export class GateWake implements Due {
  readonly isOurs = true;
  readonly #world: World;
  readonly #gate: Gate;
  #at = Number.POSITIVE_INFINITY;

  constructor(world: World, gate: Gate) {
    this.#world = world;
    this.#gate = gate;
  }

  rearm(): void {
    const at = this.#gate.nextWake();
    if (at === undefined || at >= this.#at) return;
    this.#at = Math.max(at, this.#world.now());
    this.#world.at(this.#at, this);
  }

  run(): void {
    const now = this.#world.now();
    if (now < this.#at) return;
    this.#at = Number.POSITIVE_INFINITY;
    this.#gate.wake(now);
    this.rearm();
  }
}
