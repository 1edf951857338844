import type { BackOff, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import { Latencies } from '../../simulator/report/latency-histogram.ts';

/** Bit times of IEEE 802.3 at 10 Mb/s, where a bit takes 0.1 µs. */
export const BIT: Millis = 1e-4;
/** slotTime: the longest a collision can stay unnoticed, and the unit of backoff. */
export const SLOT = 512;
/** interPacketGap, and preamble with its delimiter: what a frame costs beside itself. */
export const OVERHEAD = 96 + 64;
const GAP = 96;
/** Who begins within this of another has not heard it yet: half a slot, on a segment of the greatest length. */
const DEAF = SLOT / 2;

export interface SegmentSettings {
  /** ≥ 1. */
  readonly stations: number;
  /** Bits of a frame without its preamble. */
  readonly frame: number;
  /**
   * What all stations would send, were frames sent in no time, as a part of the segment's 10 Mb/s: a closed loop, where a station has
   * its next frame a pause after it is done with the last, so that they send less, the longer they wait. `Infinity`: each has always one.
   */
  readonly load: number;
  /** In bit times: a delay of the strategy's is one. */
  readonly backOff: BackOff;
  readonly random: Random;
}

export interface SegmentFigures {
  /** The part of the time in which bits of frames pass that arrive. */
  readonly efficiency: number;
  /** From a station's first wish to send a frame to the end of that frame, on average and of 99 in 100; `Infinity` when none arrived. */
  readonly delay: Millis;
  readonly p99: Millis;
  /** Collisions to each frame that arrived; `Infinity` where there were but collisions. */
  readonly collisions: number;
  /** Frames that were given up, as a part of all that ended. */
  readonly dropped: number;
  /** Simulated. */
  readonly time: Millis;
}

/**
 * Stations on one CSMA/CD segment: who has a frame waits until nobody sends, then sends; who collides stops, and waits as the
 * backoff says. Its timer runs while others send, as the standard has it: those whose time is over by then collide.
 */
export class Segment {
  readonly #settings: SegmentSettings;
  /** When each wants to send, in bit times. */
  readonly #ready: Float64Array;
  /** Since when it has had its frame. */
  readonly #since: Float64Array;
  readonly #collisionsOf: Int32Array;
  readonly #memory: Float64Array;
  readonly #delays = new Latencies();
  #now = 0;
  #free = 0;
  #sent = 0;
  #dropped = 0;
  #collisions = 0;
  #delay = 0;

  constructor(settings: SegmentSettings) {
    const { stations } = settings;
    this.#settings = settings;
    this.#ready = new Float64Array(stations);
    this.#since = new Float64Array(stations);
    this.#collisionsOf = new Int32Array(stations);
    this.#memory = new Float64Array(stations);
    for (let station = 0; station < stations; station += 1) this.#next(station, 0);
  }

  /** @param time ms that pass */
  run(time: Millis): void {
    const until = this.#now + time / BIT;
    while (this.#free < until) if (!this.#turn(until)) break;
    this.#now = until;
  }

  figures(): SegmentFigures {
    const ended = Math.max(1, this.#sent + this.#dropped);
    const sent = this.#sent;
    // The last frame may end after the time that was asked for.
    const span = Math.max(this.#now, this.#free);
    return {
      efficiency: (sent * this.#settings.frame) / span,
      delay: sent === 0 ? Number.POSITIVE_INFINITY : (this.#delay / sent) * BIT,
      p99: sent === 0 ? Number.POSITIVE_INFINITY : this.#delays.quantile(0.99),
      collisions: this.#collisions === 0 ? 0 : this.#collisions / sent,
      dropped: this.#dropped / ended,
      time: span * BIT,
    };
  }

  /** One frame, or one collision. @returns false when nobody begins before `until` */
  #turn(until: number): boolean {
    const ready = this.#ready;
    let earliest = Number.POSITIVE_INFINITY;
    for (const each of ready) if (each < earliest) earliest = each;
    const start = Math.max(this.#free, earliest);
    if (start >= until) return false;
    const senders: number[] = [];
    // Whoever waits for the end of another's frame begins with it; who is ready a little later has not heard.
    for (let station = 0; station < ready.length; station += 1) {
      if ((ready[station] ?? 0) < start + DEAF) senders.push(station);
    }
    const [first] = senders;
    if (senders.length === 1 && first !== undefined) this.#succeed(first, start);
    else this.#collide(senders, start + SLOT);
    return true;
  }

  #succeed(station: number, start: number): void {
    const end = start + this.#settings.frame + OVERHEAD - GAP;
    const took = end - (this.#since[station] ?? 0);
    this.#sent += 1;
    this.#delay += took;
    this.#delays.add(took * BIT);
    this.#free = end + GAP;
    this.#next(station, end);
  }

  #collide(senders: readonly number[], end: number): void {
    const { backOff, random } = this.#settings;
    this.#collisions += 1;
    this.#free = end + GAP;
    for (const station of senders) {
      const collisions = this.#collisionsOf[station] ?? 0;
      const step = backOff.next(collisions, this.#memory[station] ?? 0, random);
      if (step === undefined) {
        this.#dropped += 1;
        this.#next(station, end);
        continue;
      }
      this.#collisionsOf[station] = collisions + 1;
      this.#memory[station] = step.memory;
      this.#ready[station] = end + GAP + step.delay;
    }
  }

  /** A station is done with a frame: when it has the next, it wants to send. */
  #next(station: number, now: number): void {
    const { stations, frame, load, random } = this.#settings;
    const pause = load === Number.POSITIVE_INFINITY ? 0 : (-Math.log(1 - random()) * stations * frame) / load;
    this.#ready[station] = now + pause;
    this.#since[station] = now + pause;
    this.#collisionsOf[station] = 0;
    this.#memory[station] = 0;
  }
}
