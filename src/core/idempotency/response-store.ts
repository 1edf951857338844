import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis } from '../scalars.ts';

/**
 * Keeps responses to writes for repeats, each under an id of at most 32 characters, as bytes that only `KeptResponses` can read.
 * A response that is lost, or evicted by newer ones, makes its repeats go to the upstream.
 */
export interface ResponseStore {
  readonly bounds: readonly ResourceBound[];
  /** Calls back once; undefined if there is none, or if the store does not respond. */
  read(id: string, onRead: (bytes: Buffer | undefined) => void): void;
  /** @param onKept called once, also if it could not be kept */
  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void;
  /** What is kept under this id is of an earlier write. */
  remove(id: string): void;
}
