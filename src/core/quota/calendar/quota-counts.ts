import type { Millis } from '../../scalars.ts';
import { calendarWindow, type QuotaWindow } from './calendar-window.ts';
import type { EpochMillis, QuotaPeriod } from './quota-period.ts';

/** The requests of one part of a period, for a store; the oldest part first. */
export type StoredCount = readonly [start: EpochMillis, count: number];

/** Counts the requests of a period. Times do not have to increase: somebody may set the wall clock back. */
export interface QuotaCounts {
  /** Requests of the present period, at the last `advance`. */
  readonly used: number;
  /** Forgets what no longer counts. */
  advance(at: EpochMillis): void;
  /** Counts a request. Returns the start of the part of the period in which it counts. */
  add(at: EpochMillis): EpochMillis;
  /** The part of the period in which a request counts that is sent at this time, that of the last `advance`. */
  part(at: EpochMillis): QuotaWindow;
  /** A request counted at `sentAt` was not sent after all. Returns false if it no longer counts. */
  remove(sentAt: EpochMillis): boolean;
  /** Forgets all requests: nothing that was counted before can be removed any more. Begins a part of the period. */
  reset(at: EpochMillis): void;
  /** When fewer than `limit` requests count, if no more are sent. @param limit 1 or more */
  belowAt(limit: number): EpochMillis;
  /** When the period ends; undefined if it rolls. */
  readonly end: EpochMillis | undefined;
  stored(): readonly StoredCount[];
  /** Before anything else is called. */
  restore(stored: readonly StoredCount[]): void;
}

export function makeQuotaCounts(period: QuotaPeriod): QuotaCounts {
  return period.kind === 'rolling' ? new RollingCounts(period.length) : new CalendarCounts(period);
}

/** Counts from the beginning of an hour, a day, a week or a month. */
class CalendarCounts implements QuotaCounts {
  readonly #period: Extract<QuotaPeriod, { readonly kind: 'calendar' }>;
  #window: QuotaWindow | undefined = undefined;
  #used = 0;
  /** The count of a window that began, before the wall clock was set back to an earlier one. */
  #later: { readonly start: EpochMillis; readonly count: number } | undefined = undefined;
  /** Whether `#used` contains that count: since the step back, no window has begun. */
  #isCarried = false;

  constructor(period: Extract<QuotaPeriod, { readonly kind: 'calendar' }>) {
    this.#period = period;
  }

  get used(): number {
    return this.#used;
  }

  get end(): EpochMillis | undefined {
    return this.#window?.end;
  }

  advance(at: EpochMillis): void {
    const window = this.#window;
    if (window !== undefined && at >= window.start && at < window.end) return;
    const present = this.#windowAt(at);
    if (window !== undefined && at < window.start) this.#stepBack(window);
    else if (window !== undefined) this.#begin(present);
    this.#window = present;
  }

  /** The requests of a later window count in the present one, too: better too many than too few. */
  #stepBack({ start }: QuotaWindow): void {
    if (this.#later === undefined || this.#later.start < start) this.#later = { start, count: this.#used };
    this.#isCarried = true;
  }

  /** If the window begins for a second time, because the clock was behind for a while, what was counted in it counts again. */
  #begin({ start }: QuotaWindow): void {
    const later = this.#later;
    if (later === undefined || start !== later.start) this.#used = 0;
    else if (!this.#isCarried) this.#used = later.count;
    if (later !== undefined && start >= later.start) this.#later = undefined;
    this.#isCarried = false;
  }

  add(at: EpochMillis): EpochMillis {
    this.advance(at);
    this.#used += 1;
    return this.#window?.start ?? at;
  }

  remove(sentAt: EpochMillis): boolean {
    if (this.#window === undefined || sentAt < this.#window.start || this.#used === 0) return false;
    this.#used -= 1;
    return true;
  }

  reset(at: EpochMillis): void {
    this.#window = { start: at, end: this.#windowAt(at).end };
    this.#used = 0;
    this.#later = undefined;
    this.#isCarried = false;
  }

  part(at: EpochMillis): QuotaWindow {
    return this.#window ?? this.#windowAt(at);
  }

  belowAt(): EpochMillis {
    return this.#window?.end ?? Number.NEGATIVE_INFINITY;
  }

  stored(): readonly StoredCount[] {
    if (this.#window === undefined) return [];
    const later = this.#later;
    const present = [this.#window.start, this.#used] as const;
    // 0: it is the count of the present window, which grows.
    return later === undefined ? [present] : [present, [later.start, this.#isCarried ? 0 : later.count]];
  }

  restore(stored: readonly StoredCount[]): void {
    const [present, later] = stored;
    if (present === undefined) return;
    this.#window = this.#windowAt(present[0]);
    this.#used = present[1];
    if (later === undefined) return;
    this.#later = { start: later[0], count: later[1] };
    this.#isCarried = later[1] === 0;
  }

  #windowAt(at: EpochMillis): QuotaWindow {
    return calendarWindow(this.#period.unit, at, this.#period.offsetAt);
  }
}

/** A rolling period is counted in this many parts, and at most two more. */
const PARTS = 120;

/** A part of a rolling period. */
interface Part {
  readonly start: EpochMillis;
  count: number;
}

/**
 * Counts the requests of the last 24 hours, for example, in parts of a 120th of that. A part counts until its youngest possible
 * request is too old, so a request counts for at most one part longer than the period.
 */
class RollingCounts implements QuotaCounts {
  readonly #length: Millis;
  readonly #partLength: Millis;
  /** The oldest first. */
  #parts: Part[] = [];
  #used = 0;
  readonly end: undefined;

  constructor(length: Millis) {
    this.#length = length;
    this.#partLength = Math.max(1, length / PARTS);
  }

  get used(): number {
    return this.#used;
  }

  advance(at: EpochMillis): void {
    const ahead = (this.#parts.at(-1)?.start ?? at) - at;
    // After a step back, the latest part begins now: a request counts no longer than the period from now on.
    if (ahead > 0) this.#parts = this.#parts.map(({ start, count }) => ({ start: start - ahead, count }));
    for (let [first] = this.#parts; first !== undefined && this.#endOf(first) <= at; [first] = this.#parts) {
      this.#used -= first.count;
      this.#parts.shift();
    }
  }

  add(at: EpochMillis): EpochMillis {
    this.advance(at);
    const part = this.#partAt(at);
    part.count += 1;
    this.#used += 1;
    return part.start;
  }

  remove(sentAt: EpochMillis): boolean {
    const part = this.#parts.findLast(({ start }) => start <= sentAt);
    if (part === undefined || part.count === 0) return false;
    part.count -= 1;
    this.#used -= 1;
    return true;
  }

  reset(at: EpochMillis): void {
    this.#parts = [{ start: at, count: 0 }];
    this.#used = 0;
  }

  part(at: EpochMillis): QuotaWindow {
    const last = this.#parts.at(-1);
    const start = last !== undefined && at < last.start + this.#partLength ? last.start : this.#startOf(at);
    return { start, end: start + this.#partLength };
  }

  belowAt(limit: number): EpochMillis {
    let left = this.#used;
    for (const part of this.#parts) {
      left -= part.count;
      if (left < limit) return this.#endOf(part);
    }
    return Number.NEGATIVE_INFINITY;
  }

  stored(): readonly StoredCount[] {
    return this.#parts.filter(({ count }) => count > 0).map(({ start, count }) => [start, count]);
  }

  restore(stored: readonly StoredCount[]): void {
    this.#parts = stored.map(([start, count]) => ({ start, count }));
    for (const { count } of this.#parts) this.#used += count;
  }

  #endOf({ start }: Part): EpochMillis {
    return start + this.#partLength + this.#length;
  }

  #startOf(at: EpochMillis): EpochMillis {
    return Math.floor(at / this.#partLength) * this.#partLength;
  }

  #partAt(at: EpochMillis): Part {
    const last = this.#parts.at(-1);
    if (last !== undefined && at < last.start + this.#partLength) return last;
    const part = { start: this.#startOf(at), count: 0 };
    this.#parts.push(part);
    return part;
  }
}
