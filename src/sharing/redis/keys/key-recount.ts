import type { Millis } from '../../../core/scalars.ts';
import type { RedisKeyCommands } from './redis-key-commands.ts';

export interface KeyRecountParts {
  readonly commands: Pick<RedisKeyCommands, 'count' | 'counts'>;
  /** Whether Redis can be asked at present. */
  readonly isConnected: () => boolean;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
}

/** Keys expire in Redis without a change that this process makes. */
const INTERVAL: Millis = 10_000;
/**
 * While more have expired. A step that finds 200 names of each kind takes 0.9 ms of Redis' processor: 2 % of its time for each
 * replica, until none is left.
 */
const STEP_INTERVAL: Millis = 50;

/** Updates the numbers of keys in Redis, and removes the names of expired ones in steps, until none is left. */
export class KeyRecount {
  readonly #parts: KeyRecountParts;
  /** Upstreams whose steps go on, each with what cancels the next step. */
  readonly #steps = new Map<string, () => void>();
  #cancelNext: (() => void) | undefined;
  #isClosed = false;

  constructor(parts: KeyRecountParts) {
    this.#parts = parts;
    this.#scheduleNext();
  }

  /** Recounts each upstream of which this process knows the numbers. Does nothing for those whose steps go on. */
  recount(): void {
    const { commands, isConnected } = this.#parts;
    if (!isConnected()) return;
    for (const { upstream } of commands.counts.all) if (!this.#steps.has(upstream)) this.#step(upstream);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
    for (const cancel of this.#steps.values()) cancel();
    this.#steps.clear();
  }

  #scheduleNext(): void {
    this.#cancelNext = this.#parts.schedule(INTERVAL, () => {
      this.recount();
      this.#scheduleNext();
    });
  }

  #step(upstream: string): void {
    const { commands, schedule } = this.#parts;
    this.#steps.set(upstream, () => undefined);
    commands.count(upstream, (counted) => {
      const isNextDue = counted?.hasMoreExpired === true && !this.#isClosed;
      // Without a response, the next recount goes on.
      if (!isNextDue) return void this.#steps.delete(upstream);
      const cancel = schedule(STEP_INTERVAL, () => this.#step(upstream));
      this.#steps.set(upstream, cancel);
    });
  }
}
