import type { ReplayMemory } from '../overload/replay-memory.ts';
import { decodeBody } from './decode-body.ts';
import { EventStreamFields } from './event-stream-fields.ts';
import { type FieldLookup, lookupInJson } from './read-cost-fields.ts';
import type { CostFieldPath } from './route-costs.ts';

/** A longer body, encoded or decoded, is not read. */
const MAX_TAPPED_BYTES = 1024 * 1024;

/** Why a response named no cost. */
export type UnreadCostReason = 'too_long' | 'no_memory' | 'incomplete' | 'undecodable' | 'not_found';

/** Reads a response body while it is forwarded, and delays nothing of it. */
export interface CostTap {
  /** Copies what it needs: the caller may reuse the memory of a chunk. */
  add(chunk: Buffer): void;
  /** Nothing more arrives. @param isComplete nothing is missing */
  end(isComplete: boolean): void;
}

export interface CostTapOptions {
  /** The memory of kept bodies, and whose share of it a tap uses. */
  readonly memory: ReplayMemory;
  readonly owner: string;
  /** See `codingOf`. */
  readonly coding: string;
  readonly onRead: (lookup: FieldLookup) => void;
  readonly onUnread: (reason: UnreadCostReason) => void;
}

/** Keeps a JSON body up to 1 MiB, and decodes it once it has ended. */
export class JsonCostTap implements CostTap {
  readonly #options: CostTapOptions;
  #chunks: Buffer[] = [];
  #length = 0;
  #failure: UnreadCostReason | undefined;

  constructor(options: CostTapOptions) {
    this.#options = options;
  }

  add(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    const { memory, owner } = this.#options;
    if (this.#length + chunk.length > MAX_TAPPED_BYTES) return this.#drop('too_long');
    if (!memory.reserve(chunk.length, owner)) return this.#drop('no_memory');
    this.#length += chunk.length;
    this.#chunks.push(Buffer.from(chunk));
  }

  end(isComplete: boolean): void {
    const { coding, onRead, onUnread } = this.#options;
    const body = Buffer.concat(this.#chunks);
    if (!isComplete) this.#failure ??= 'incomplete';
    const failure = this.#failure;
    this.#drop('incomplete');
    if (failure !== undefined) return onUnread(failure);
    // After the end of the response is written: parsing takes milliseconds.
    setImmediate(() => {
      decodeBody(body, coding, MAX_TAPPED_BYTES, (decoded) => {
        if (decoded === undefined) onUnread('undecodable');
        else onRead(lookupInJson(decoded));
      });
    });
  }

  #drop(reason: UnreadCostReason): void {
    this.#failure ??= reason;
    this.#options.memory.release(this.#length, this.#options.owner);
    this.#length = 0;
    this.#chunks = [];
  }
}

/** Reads server-sent events one by one. */
export class EventStreamCostTap implements CostTap {
  readonly #options: CostTapOptions;
  readonly #fields: EventStreamFields;

  constructor(options: CostTapOptions, paths: readonly CostFieldPath[]) {
    this.#options = options;
    this.#fields = new EventStreamFields(paths);
  }

  add(chunk: Buffer): void {
    if (this.#options.coding === '') this.#fields.add(chunk);
  }

  /** What an aborted stream has named is not its whole cost. */
  end(isComplete: boolean): void {
    const { coding, onRead, onUnread } = this.#options;
    if (coding !== '') onUnread('undecodable');
    else if (isComplete) onRead(this.#fields.lookup);
    else onUnread('incomplete');
  }
}
