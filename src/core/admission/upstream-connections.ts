import type { Millis } from '../scalars.ts';
import type { GateStore } from './gate-store.ts';
import type { AwaitedEnds } from './awaited-ends.ts';
import { findAwaitedEnds } from './awaited-ends.ts';
import type { WaitQueue } from './wait-queue.ts';

/** Tracks the connections to all upstreams: callers report when an attempt claims and releases one. */
export class UpstreamConnections {
  readonly #store: GateStore;
  readonly #waitQueue: WaitQueue;

  constructor(store: GateStore, waitQueue: WaitQueue) {
    this.#store = store;
    this.#waitQueue = waitQueue;
  }

  /** An attempt that has or awaits a connection begins. @param fairnessKey see `Ticket` */
  onClaimed(upstream: string, fairnessKey: string): void {
    this.#store.upstream(upstream).connectionSlots?.onAttemptStart(fairnessKey);
  }

  /** An attempt no longer needs its connection. See `ConnectionSlots.onAttemptEnd`. */
  onReleased(upstream: string, fairnessKey: string, took: Millis, isCutShort = false): void {
    this.#store.upstream(upstream).connectionSlots?.onAttemptEnd(fairnessKey, took, isCutShort);
  }

  /** The number of connections to the upstream; undefined if they are not bounded here. */
  capacity(upstream: string): number | undefined {
    return this.#store.upstream(upstream).connectionSlots?.size;
  }

  /** What queued requests wait for: see `findAwaitedEnds`. */
  awaitedEnds(upstream: string, now: Millis): AwaitedEnds[] {
    return findAwaitedEnds(this.#store, upstream, now);
  }

  /** A connection to the upstream is free again. Returns whether a ticket was waiting for one. */
  onFree(upstream: string, now: Millis): boolean {
    const { connectionSlots: slots } = this.#store.upstream(upstream);
    if (slots === undefined || slots.queueLimit.queue.size === 0) return false;
    this.#waitQueue.serveReady(slots.queueLimit, now);
    return true;
  }
}
