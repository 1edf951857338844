import type { ResponseVersion } from '../undici/parser-patches.ts';

/** The head of an upstream's response that is neither forwarded nor discarded yet. */
export interface ResponseHead {
  readonly status: number;
  readonly reasonPhrase: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly httpVersion: ResponseVersion;
  /** Headers of ours, apart because Connection lists only the upstream's own; absent if there are none. */
  readonly addedHeaders?: readonly string[];
  /** In seconds, if a Retry-After of ours is among them. */
  readonly retryAfterSeconds?: number;
  /** How many times the client's result was polled for, if more than once. */
  readonly polls?: number | undefined;
}
