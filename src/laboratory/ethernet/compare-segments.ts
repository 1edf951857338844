import type { BackOff, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Cell } from '../round-robin.ts';
import { Rounds } from '../round-robin.ts';
import { streams } from '../random-streams.ts';
import { predictEfficiency } from './predict-efficiency.ts';
import type { SegmentFigures } from './ethernet-segment.ts';
import { Segment } from './ethernet-segment.ts';

export interface EthernetRow extends SegmentFigures {
  readonly stations: number;
  /** As Metcalfe and Boggs have it, of stations that always have something to send; undefined where they have not. */
  readonly predicted: number | undefined;
}

export interface EthernetSettings {
  readonly stations: readonly number[];
  /** Bits. */
  readonly frame: number;
  readonly load: number;
  readonly backOff: BackOff;
  /** Simulated of each. */
  readonly time: Millis;
  readonly seed: number;
}

const PARTS = 50;
/** Simulated in a step. */
const STRIDE: Millis = 1000;

export function compareSegments(settings: EthernetSettings): Rounds<EthernetRow> {
  const next = streams(settings.seed);
  return new Rounds(
    settings.stations.map((stations) => new EthernetCell({ ...settings, stations }, next())),
    PARTS,
  );
}

class EthernetCell implements Cell<EthernetRow> {
  readonly #segment: Segment;
  readonly #stations: number;
  readonly #predicted: number | undefined;
  readonly #part: Millis;
  #inPart: Millis = 0;

  constructor(
    { stations, frame, load, backOff, time }: Omit<EthernetSettings, 'stations'> & { stations: number },
    random: Random,
  ) {
    this.#segment = new Segment({ stations, frame, load, backOff, random });
    this.#stations = stations;
    this.#predicted = load === Number.POSITIVE_INFINITY ? predictEfficiency(stations, frame) : undefined;
    this.#part = time / PARTS;
  }

  run(): boolean {
    const time = Math.min(STRIDE, this.#part - this.#inPart);
    this.#segment.run(time);
    this.#inPart += time;
    if (this.#inPart < this.#part) return false;
    this.#inPart = 0;
    return true;
  }

  row(): EthernetRow | undefined {
    const figures = this.#segment.figures();
    if (figures.time === 0) return undefined;
    return { stations: this.#stations, ...figures, predicted: this.#predicted };
  }
}
