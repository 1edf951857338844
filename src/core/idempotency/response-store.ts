import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis } from '../scalars.ts';

/** Between the name of a write and the client, in the id of a response. No name contains it. */
export const RESPONSE_SEPARATOR = '.';

/** By default, the header that marks a stored response, of the upstream or of Tidegate. */
export const REPLAYED_HEADER = 'Idempotent-Replayed';

/** How many responses are kept by default. */
export const MAX_RESPONSES = 100_000;

/** The bytes of all responses that SQLite or Redis keeps. */
export const MAX_STORED_BYTES = 256 * 1024 * 1024;

/** Responses to one write, each to another client. A further client's is not kept. So all of a write can be removed in one step. */
export const MAX_PER_WRITE = 1000;

/** Responses that a step removes at most because their time is over. Later steps remove the others, which are not found meanwhile. */
export const MAX_EXPIRED = 200;

/** What all kept responses together may take. */
export interface ResponseBounds {
  readonly maxCount: number;
  readonly maxBytes: number;
}

/** The used part of the bound that is nearer. */
export function usedOfBounds({ maxCount, maxBytes }: ResponseBounds, count: number, bytes: number): number {
  return Math.max(count / maxCount, bytes / maxBytes);
}

/**
 * Keeps responses to writes for repeats, as bytes that only `KeptResponses` can read. A response is that to one client: its id is
 * `write.client`. A response that is lost, or evicted by newer ones, makes its repeats go to the upstream.
 */
export interface ResponseStore {
  readonly bounds: readonly ResourceBound[];
  /**
   * Calls back once; undefined if there is none, or if the store does not respond. `keptFor`: for how long it is still kept, by the clock
   * of the store, because the clocks of processes differ.
   */
  read(id: string, onRead: (bytes: Buffer | undefined, keptFor: Millis) => void): void;
  /** @param onKept called once, also if it could not be kept */
  keep(id: string, bytes: Buffer, lifetime: Millis, onKept: () => void): void;
  /** All that is kept for this name, for any client, is of an earlier write. */
  remove(write: string): void;
}

/** The name of the write in the id of a response. */
export function writeOfResponse(id: string): string {
  return id.split(RESPONSE_SEPARATOR, 1)[0] ?? id;
}
