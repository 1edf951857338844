import { RecencyMap } from '../../core/collections/recency-map.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { limitId } from '../../core/limits/limit-ref.ts';
import type { WorkerSharedLimit } from './worker-shared-limit.ts';

/** The maximum number of limits that are examined for one eviction. */
const EVICTION_SCAN = 32;
/** The maximum number of limits of one name, such as one for each endpoint. */
const MAX_PER_FAMILY = 1000;
/** The family of all limits of clients and credentials. */
const CLIENT_FAMILY = '';

/**
 * Limits that are made on demand, in bounded families: all those of clients and credentials, and those of each other name.
 * In a full family, the least recently used idle limit makes room for a new one.
 */
export class LimitFamilies {
  /** Each family has its least recently used limit first. */
  readonly #families = new Map<string, RecencyMap<string, WorkerSharedLimit>>();
  readonly #maxClientLimits: number;
  #evictions = 0;

  constructor(maxClientLimits: number) {
    this.#maxClientLimits = maxClientLimits;
  }

  /** `used`: of the fullest family, from 0 to 1. `reached`: the number of evictions. */
  get bound(): { readonly used: number; readonly reached: number } {
    const used = [...this.#families].map(([family, limits]) => limits.size / this.#maxSize(family));
    return { used: Math.max(0, ...used), reached: this.#evictions };
  }

  /** Marks a limit as the most recently used, if it belongs to a family. */
  touch(shared: WorkerSharedLimit): void {
    const { ref } = shared.limit;
    this.#families.get(familyOf(ref))?.use(limitId(ref));
  }

  /** Adds a limit. Returns the one that is to be dropped to make room. */
  add(newest: WorkerSharedLimit): WorkerSharedLimit | undefined {
    const { ref } = newest.limit;
    const name = familyOf(ref);
    const family = this.#families.get(name) ?? new RecencyMap<string, WorkerSharedLimit>();
    this.#families.set(name, family);
    family.set(limitId(ref), newest);
    if (family.size <= this.#maxSize(name)) return undefined;
    const evicted = findEvictable(family.values(), newest);
    if (evicted !== undefined) this.#evictions += 1;
    return evicted;
  }

  remove({ limit }: WorkerSharedLimit): void {
    this.#families.get(familyOf(limit.ref))?.delete(limitId(limit.ref));
  }

  #maxSize(family: string): number {
    return family === CLIENT_FAMILY ? this.#maxClientLimits : MAX_PER_FAMILY;
  }
}

function familyOf({ upstream, nested, scope }: LimitRef): string {
  return scope === 'upstream' ? `${upstream}\0${nested}` : CLIENT_FAMILY;
}

/**
 * The first idle limit that has learned nothing, or else the first idle one, among those examined. Undefined if all are
 * in use: the family then exceeds its bound for a while.
 */
function findEvictable(limits: Iterable<WorkerSharedLimit>, newest: WorkerSharedLimit): WorkerSharedLimit | undefined {
  let idle: WorkerSharedLimit | undefined;
  let examined = 0;
  for (const each of limits) {
    if (examined === EVICTION_SCAN) break;
    examined += 1;
    if (each === newest || !each.isIdle) continue;
    if (!each.limit.hasLearned) return each;
    idle ??= each;
  }
  return idle;
}
