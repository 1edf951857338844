import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import { LatencyHistogram } from '../../simulator/report/latency-histogram.ts';

/** Bit times of IEEE 802.3 at 10 Mb/s, where a bit takes 0.1 µs. */
export const BIT_TIME: Millis = 1e-4;
/** slotTime: the longest a collision can stay unnoticed, and the unit of backoff. */
export const SLOT_BITS = 512;
/** interPacketGap, preamble and delimiter: the overhead of a frame. */
export const FRAME_OVERHEAD_BITS = 96 + 64;
const INTERPACKET_GAP_BITS = 96;
/** A station that begins within this time of another cannot sense it yet: half a slot, on a segment of maximum length. */
const COLLISION_WINDOW_BITS = SLOT_BITS / 2;

export interface SegmentSettings {
  /** ≥ 1. */
  readonly stations: number;
  /** Bits of a frame without its preamble. */
  readonly frame: number;
  /**
   * The load all stations would offer if frames took no time, as a share of the segment's 10 Mb/s. A closed loop: a station gets
   * its next frame a pause after the last one ended, so longer waits reduce the load. `Infinity`: each always has a frame to send.
   */
  readonly load: number;
  /** In bit times: a millisecond of the strategy is one. */
  readonly backOff: BackOff;
  readonly random: Random;
}

export interface SegmentFigures {
  /** The share of time spent on bits of delivered frames. */
  readonly efficiency: number;
  /** Time from having a frame to its delivery, mean and p99; `Infinity` if none was delivered. */
  readonly delay: Millis;
  readonly p99: Millis;
  /** Collisions per delivered frame; `Infinity` if none was delivered. */
  readonly collisions: number;
  /** Share of ended frames that were given up. */
  readonly dropped: number;
  /** Simulated. */
  readonly time: Millis;
}

/**
 * Stations on one CSMA/CD segment. A station with a frame waits until the segment is idle, then sends; after a collision it waits for its
 * backoff. The timer runs while others send, as in the standard: stations whose timers expire meanwhile collide.
 */
export class EthernetSegment {
  readonly #settings: SegmentSettings;
  /** When each station is ready to send, in bit times. */
  readonly #readyAt: Float64Array;
  /** When each station got its frame. */
  readonly #since: Float64Array;
  readonly #collisionsOf: Int32Array;
  readonly #memory: Float64Array;
  readonly #delays = new LatencyHistogram();
  #now = 0;
  #freeAt = 0;
  #sent = 0;
  #dropped = 0;
  #collisions = 0;
  #delay = 0;

  constructor(settings: SegmentSettings) {
    const { stations } = settings;
    this.#settings = settings;
    this.#readyAt = new Float64Array(stations);
    this.#since = new Float64Array(stations);
    this.#collisionsOf = new Int32Array(stations);
    this.#memory = new Float64Array(stations);
    for (let station = 0; station < stations; station += 1) this.#scheduleNextFrame(station, 0);
  }

  /** @param time ms to simulate */
  run(time: Millis): void {
    const until = this.#now + time / BIT_TIME;
    while (this.#freeAt < until) if (!this.#transmitNext(until)) break;
    this.#now = until;
  }

  figures(): SegmentFigures {
    const ended = Math.max(1, this.#sent + this.#dropped);
    const sent = this.#sent;
    // The last frame may end after the requested time.
    const span = Math.max(this.#now, this.#freeAt);
    return {
      efficiency: (sent * this.#settings.frame) / span,
      delay: sent === 0 ? Number.POSITIVE_INFINITY : (this.#delay / sent) * BIT_TIME,
      p99: sent === 0 ? Number.POSITIVE_INFINITY : this.#delays.quantile(0.99),
      collisions: this.#collisions === 0 ? 0 : this.#collisions / sent,
      dropped: this.#dropped / ended,
      time: span * BIT_TIME,
    };
  }

  /** One frame, or one collision. @returns false if no station begins before `until` */
  #transmitNext(until: number): boolean {
    const ready = this.#readyAt;
    let earliest = Number.POSITIVE_INFINITY;
    for (const each of ready) if (each < earliest) earliest = each;
    const start = Math.max(this.#freeAt, earliest);
    if (start >= until) return false;
    const senders: number[] = [];
    // Stations that wait for the end of a frame begin at once; those ready slightly later have not sensed them.
    for (let station = 0; station < ready.length; station += 1) {
      if ((ready[station] ?? 0) < start + COLLISION_WINDOW_BITS) senders.push(station);
    }
    const [first] = senders;
    if (senders.length === 1 && first !== undefined) this.#succeed(first, start);
    else this.#collide(senders, start + SLOT_BITS);
    return true;
  }

  #succeed(station: number, start: number): void {
    const end = start + this.#settings.frame + FRAME_OVERHEAD_BITS - INTERPACKET_GAP_BITS;
    const took = end - (this.#since[station] ?? 0);
    this.#sent += 1;
    this.#delay += took;
    this.#delays.add(took * BIT_TIME);
    this.#freeAt = end + INTERPACKET_GAP_BITS;
    this.#scheduleNextFrame(station, end);
  }

  #collide(senders: readonly number[], end: number): void {
    const { backOff, random } = this.#settings;
    this.#collisions += 1;
    this.#freeAt = end + INTERPACKET_GAP_BITS;
    for (const station of senders) {
      const collisions = this.#collisionsOf[station] ?? 0;
      const step = backOff.next(collisions, this.#memory[station] ?? 0, random);
      if (step === undefined) {
        this.#dropped += 1;
        this.#scheduleNextFrame(station, end);
        continue;
      }
      this.#collisionsOf[station] = collisions + 1;
      this.#memory[station] = step.memory;
      this.#readyAt[station] = end + INTERPACKET_GAP_BITS + step.delay;
    }
  }

  /** Ends a station's frame and draws when the next is ready. */
  #scheduleNextFrame(station: number, now: number): void {
    const { stations, frame, load, random } = this.#settings;
    const pause = load === Number.POSITIVE_INFINITY ? 0 : (-Math.log(1 - random()) * stations * frame) / load;
    this.#readyAt[station] = now + pause;
    this.#since[station] = now + pause;
    this.#collisionsOf[station] = 0;
    this.#memory[station] = 0;
  }
}
