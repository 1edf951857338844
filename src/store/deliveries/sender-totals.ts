import { CountSketch } from './count-sketch.ts';

export interface RowCounter {
  readonly count: number;
  /** Of sealed messages and results. */
  readonly bytes: number;
}

interface SenderChange extends RowCounter {
  readonly sender: string;
  readonly isEvictable: boolean;
}

/** A sender with more of the rows that can be removed loses its own ones first. */
const LARGE_PART = 1 / 9;
/** Of senders that may have a large part. There are at most nine that do. */
const MAX_LARGE = 64;

/**
 * How much each sender has stored, in memory of a fixed size: a figure may be slightly too large, never too small. A transaction that
 * fails changes nothing.
 */
export class SenderTotals {
  readonly #count = new CountSketch();
  readonly #bytes = new CountSketch();
  readonly #evictable = new CountSketch();
  #evictableTotal = 0;
  /** They had a large part of the rows that can be removed, when they were last changed. */
  readonly #large = new Set<string>();
  /** Of the present transaction. */
  #changes: SenderChange[] = [];

  /** A transaction begins. The one before has failed, if it was not stored. */
  begin(): void {
    for (const { count, bytes, ...change } of this.#changes) this.#apply({ ...change, count: -count, bytes: -bytes });
    this.#changes = [];
  }

  /** It is stored. */
  commit(): void {
    this.#changes = [];
  }

  /** @param isEvictable whether these rows are removed to make room */
  change(sender: string, isEvictable: boolean, count: number, bytes: number): void {
    const change = { sender, isEvictable, count, bytes };
    this.#changes.push(change);
    this.#apply(change);
  }

  /** The rows of the sender that are not removed to make room, within the present transaction. */
  lastingOf(sender: string): RowCounter {
    return { count: this.#count.get(sender), bytes: this.#bytes.get(sender) };
  }

  /** The sender with the most rows that are removed to make room; undefined if none has a large part of them. */
  largestEvictable(): string | undefined {
    this.#pruneLarge();
    let [largest, most] = [undefined as string | undefined, 0];
    for (const sender of this.#large) {
      const count = this.#evictable.get(sender);
      if (count > most) [largest, most] = [sender, count];
    }
    return largest;
  }

  #apply({ sender, isEvictable, count, bytes }: SenderChange): void {
    if (isEvictable) {
      this.#evictable.add(sender, count);
      this.#evictableTotal += count;
      if (count > 0 && this.#isLarge(sender)) this.#large.add(sender);
      if (this.#large.size > MAX_LARGE) this.#pruneLarge();
    } else {
      this.#count.add(sender, count);
      this.#bytes.add(sender, bytes);
    }
  }

  #isLarge(sender: string): boolean {
    return this.#evictable.get(sender) > this.#evictableTotal * LARGE_PART;
  }

  #pruneLarge(): void {
    for (const sender of this.#large) if (!this.#isLarge(sender)) this.#large.delete(sender);
  }
}
