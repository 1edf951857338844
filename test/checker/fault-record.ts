import type { Millis } from '../../src/core/scalars.ts';

/** On the clock of `performance.now`. */
export interface Interval {
  readonly from: Millis;
  /** Infinity while it lasts. */
  to: Millis;
}

export interface FaultRecord extends Interval {
  readonly name: string;
  readonly detail: string;
}

/** A process was stopped (SIGSTOP) from one time to another. */
export interface StopRecord extends Interval {
  /** Writes that were charged again by an attempt which arrived directly after the stop. */
  late: number;
}

/** A process decided without the store from one time to another, or may have. */
export interface LocalPart extends Interval {
  readonly place: number;
}

/** For requests in transit and the recovery of a process. */
const SLACK: Millis = 1000;
/** An attempt that was decided before the stop is written to its connection directly after it. */
const LATE_WITHIN: Millis = 2000;
/** The writes that one turn of the event loop sends: a process cannot check its clock between this and the system call. */
const LATE_PER_STOP = 1;

/** All faults of a run. */
export class FaultLog {
  readonly records: FaultRecord[] = [];
  readonly stops: StopRecord[] = [];
  /** What was stored in these times is lost. */
  readonly lostParts: Interval[] = [];
  /** With `onStoreLost: local`. */
  readonly localParts: LocalPart[] = [];

  begin(name: string, detail = ''): FaultRecord {
    const record = { name, detail, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.records.push(record);
    return record;
  }

  get isInProgress(): boolean {
    return this.records.at(-1)?.to === Number.POSITIVE_INFINITY;
  }

  hasOverlapped({ from, to }: Interval): boolean {
    return this.records.some((each) => each.from <= to && each.to + SLACK >= from);
  }

  /** The number of lost parts in which any of these was in progress: what the store learned of it may be lost so often. */
  countLosses(asks: readonly Interval[]): number {
    const overlaps = (part: Interval): boolean =>
      asks.some(({ from, to }) => part.from - SLACK <= to && part.to + SLACK >= from);
    return this.lostParts.filter(overlaps).length;
  }

  /** Whether the process of this place may have decided about the request without the store. */
  mayBeLocal({ place, from, to }: LocalPart): boolean {
    return this.localParts.some((part) => part.place === place && part.from - SLACK <= to && part.to + SLACK >= from);
  }

  /** Whether an attempt that arrived at this time may have been sent just before a process was stopped. Counts it. */
  takeLate(at: Millis): boolean {
    const stop = this.stops.find((each) => each.to <= at && at <= each.to + LATE_WITHIN && each.late < LATE_PER_STOP);
    if (stop === undefined) return false;
    stop.late += 1;
    return true;
  }

  /** The number of faults of each kind. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name } of this.records) counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  }
}
