import { UNRESOLVED_SHARE } from '../../../core/idempotency/key-records.ts';
import type { SharedKeyCounts } from '../../../core/events/store-events.ts';
import type { ResourceBound } from '../../../core/overload/resource-bound.ts';

type KeyState = 'unresolved' | 'answered';

/** The numbers of keys in Redis, as far as its responses said, and their bounds. Beyond these, the scripts remove keys. */
export class RedisKeyCounts {
  /** The bounds of each upstream. */
  readonly max: Readonly<Record<KeyState, number>>;
  readonly #byUpstream = new Map<string, SharedKeyCounts>();
  #unresolvedRemoved = 0;
  #answeredRemoved = 0;

  /** @param maxKeys answered keys of an upstream */
  constructor(maxKeys: number) {
    this.max = { answered: maxKeys, unresolved: Math.max(1, Math.floor(UNRESOLVED_SHARE * maxKeys)) };
  }

  /** The counts of each upstream that Redis has responded about. */
  get all(): readonly SharedKeyCounts[] {
    return [...this.#byUpstream.values()];
  }

  get bounds(): readonly ResourceBound[] {
    const used = (state: KeyState): number =>
      this.all.reduce((most, counts) => Math.max(most, counts[state] / this.max[state]), 0);
    return [
      { name: 'unsettled_keys', used: used('unresolved'), reached: this.#unresolvedRemoved },
      { name: 'settled_keys', used: used('answered'), reached: this.#answeredRemoved },
    ];
  }

  /** @param text the unresolved keys, the answered ones, and of each how many were removed because there were too many */
  onReply(upstream: string, text: string): void {
    const [unresolved = 0, answered = 0, unresolvedRemoved = 0, answeredRemoved = 0] = text.split(' ').map(Number);
    this.#byUpstream.set(upstream, { upstream, unresolved, answered });
    this.#unresolvedRemoved += unresolvedRemoved;
    this.#answeredRemoved += answeredRemoved;
  }
}
