import type { Millis } from '../../core/scalars.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import { requesterKeyPrefix } from '../../core/quota/requester.ts';

/** The maximum number of held clients that are remembered for workers that join later. */
const MAX_HOLDS = 10_000;

/** Clients that have to wait, for workers that join later. */
export class HeldClients {
  readonly #heldUntil = new Map<string, Millis>();

  /** Adds holds without their allowances: those restore themselves, and a new worker measures its own. */
  add(holds: readonly ClientHold[], now: Millis): void {
    for (const { client, until } of holds) {
      if (until > now) this.#heldUntil.set(client, Math.max(until, this.#heldUntil.get(client) ?? until));
    }
    for (const [client, until] of this.#heldUntil) {
      if (until <= now || this.#heldUntil.size > MAX_HOLDS) this.#heldUntil.delete(client);
    }
  }

  /** Adds holds that an earlier process had stored. */
  restore(holds: readonly ClientHold[]): void {
    for (const { client, until } of holds) this.#heldUntil.set(client, until);
  }

  /** Removes the holds of a client at all upstreams, with any credential. */
  remove(client: string): void {
    for (const key of this.#heldUntil.keys()) {
      if (key.endsWith(`\0${client}`) || key.includes(`\0${requesterKeyPrefix(client)}`)) this.#heldUntil.delete(key);
    }
  }

  /** The holds that have not ended, `max` at most. */
  active(max: number, now: Millis): ClientHold[] {
    const active = [...this.#heldUntil].filter(([, until]) => until > now);
    return active.slice(0, max).map(([client, until]) => ({ client, until }));
  }
}
