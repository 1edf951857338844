import type { Millis } from '../../scalars.ts';
import type { ActiveBlock } from './active-block.ts';
import { isBlockedBy, isUnused, provesRecovery } from './active-block.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { matchesAttributes } from './request-attributes.ts';
import { makeProbeDue } from './unanswered-probes.ts';

/** More parts are not blocked at the same time: each request is compared with all of them. */
const MAX_BLOCKS = 32;
/** Shared, because limits of clients are many. */
const NONE: readonly ActiveBlock[] = [];

/** The blocks of a limit: those of parts that are rejected or fail, and the one that began last. Only that may hold back all requests. */
export class ActiveBlocks {
  /** Oldest first. */
  #blocks = NONE;

  get latest(): ActiveBlock | undefined {
    return this.#blocks.at(-1);
  }

  /** The block that holds back this request: that of its part, if there is one, before one of all requests. */
  find(attributes: RequestAttributes | undefined): ActiveBlock | undefined {
    for (const block of this.#blocks) if (isBlockedBy(block, attributes)) return block;
    return undefined;
  }

  /** As `find`; without attributes, the block that began last. */
  findOrLatest(attributes: RequestAttributes | undefined): ActiveBlock | undefined {
    return attributes === undefined ? this.latest : this.find(attributes);
  }

  /** Adds a block. Of those before it, only blocks of other parts stay in force. */
  add(block: ActiveBlock): void {
    const isKept = (other: ActiveBlock): boolean => other.isPartial && !matchesAttributes(block.scope, other.scope);
    this.#blocks = [...this.#blocks.filter(isKept).slice(1 - MAX_BLOCKS), block];
  }

  /** Removes the blocks that end by the acceptance of this request. Returns the one of them that began last. */
  removeProven(sentAt: Millis, attributes: RequestAttributes | undefined): ActiveBlock | undefined {
    const ended = this.#blocks.filter((block) => provesRecovery(block, sentAt, attributes));
    if (ended.length > 0) this.#blocks = this.#blocks.filter((block) => !ended.includes(block));
    return ended.at(-1);
  }

  /** Ends blocks of parts that no request has used for long: each costs a comparison at each request. */
  removeUnused(now: Millis): void {
    if (!this.#blocks.some((block) => isUnused(block, now))) return;
    this.#blocks = this.#blocks.filter((block) => !isUnused(block, now));
  }

  /** Makes the next probe of each block due now, for any client. */
  makeProbesDue(now: Millis): void {
    for (const block of this.#blocks) makeProbeDue(block, now);
  }
}
