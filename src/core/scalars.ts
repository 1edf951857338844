/** Milliseconds: a duration, or a point on a monotonic clock of arbitrary origin. */
export type Millis = number;

/** Requests a second; `Infinity` means unlimited. */
export type PerSecond = number;

/** Returns a number uniform on [0, 1). */
export type Random = () => number;

/** A monotonic clock. Only the proxy and the simulator read one; `core` gets its readings as arguments. */
export interface Clock {
  now(): Millis;
}

/** The earlier of two times; undefined if there is none. */
export function earliest(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
