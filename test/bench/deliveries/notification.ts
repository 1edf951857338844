/** What the sender and the receiver of a run with kills have in common. */
export interface Notification {
  readonly id: string;
  /** Those with the same key are sent and delivered in the order of `n`; absent: in any order. */
  readonly key?: string;
  readonly n: number;
}

/** Connections of the sender: each sends its notifications one after the other. */
export const LANES = 64;
const KEYS_OF_LANE = 16;
/** One of so many notifications has a key. */
const KEYED = 5;

/** The n-th notification of a lane, from 0. */
export function makeNotification(lane: number, n: number): Notification {
  const id = `evt_${lane}_${n}`;
  if (n % KEYED !== 0) return { id, n };
  return { id, key: `object_${lane}_${(n / KEYED) % KEYS_OF_LANE}`, n };
}
