import type { ReplayMemory } from '../overload/replay-memory.ts';
import { decodeBody } from './decode-body.ts';
import { type FieldLookup, lookupInJson } from './read-cost-fields.ts';

/** A longer body, encoded or decoded, is not read. */
const MAX_TAPPED_BYTES = 1024 * 1024;

/** Why a response named no cost. */
export type UnreadCostReason = 'too_long' | 'no_memory' | 'incomplete' | 'undecodable' | 'not_found';

export interface CostTapOptions {
  /** The memory of bodies that are read for a cost, and whose share of it this one uses. */
  readonly memory: ReplayMemory;
  readonly owner: string;
  /** See `codingOf`. */
  readonly coding: string;
  readonly onRead: (lookup: FieldLookup) => void;
  readonly onUnread: (reason: UnreadCostReason) => void;
}

/** Keeps a JSON body of up to 1 MiB while it is forwarded, and parses it once, after its end. Delays nothing of it. */
export class CostTap {
  readonly #options: CostTapOptions;
  #chunks: Buffer[] = [];
  #length = 0;
  #failure: UnreadCostReason | undefined;

  constructor(options: CostTapOptions) {
    this.#options = options;
  }

  /** Copies the chunk: the caller may reuse its memory. */
  add(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    const { memory, owner } = this.#options;
    if (this.#length + chunk.length > MAX_TAPPED_BYTES) return this.#fail('too_long');
    if (!memory.reserve(chunk.length, owner)) return this.#fail('no_memory');
    this.#length += chunk.length;
    this.#chunks.push(Buffer.from(chunk));
  }

  /** Nothing more arrives. @param isComplete nothing is missing */
  end(isComplete: boolean): void {
    const { coding, onRead, onUnread } = this.#options;
    if (!isComplete) this.#fail('incomplete');
    if (this.#failure !== undefined) return onUnread(this.#failure);
    // After the end of the response is written: parsing takes milliseconds.
    setImmediate(() => {
      decodeBody(Buffer.concat(this.#chunks), coding, MAX_TAPPED_BYTES, (decoded) => {
        if (decoded === undefined) onUnread('undecodable');
        else onRead(lookupInJson(decoded));
        this.#release();
      });
    });
  }

  #fail(reason: UnreadCostReason): void {
    this.#failure ??= reason;
    this.#release();
  }

  #release(): void {
    this.#options.memory.release(this.#length, this.#options.owner);
    this.#length = 0;
    this.#chunks = [];
  }
}
