import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { RoundRobinCell } from '../round-robin.ts';
import { RoundRobinExperiment } from '../round-robin.ts';
import { randomStreams } from '../random-streams.ts';
import { predictEfficiency } from './predict-efficiency.ts';
import type { SegmentFigures } from './ethernet-segment.ts';
import { EthernetSegment } from './ethernet-segment.ts';

export interface EthernetRow extends SegmentFigures {
  readonly stations: number;
  /** Efficiency predicted by Metcalfe and Boggs for saturated stations; undefined for others. */
  readonly predicted: number | undefined;
}

export interface EthernetSettings {
  readonly stations: readonly number[];
  /** Bits. */
  readonly frame: number;
  readonly load: number;
  readonly backOff: BackOff;
  /** Simulated time of each, in ms. */
  readonly time: Millis;
  readonly seed: number;
}

const PARTS = 50;
/** Simulated in a step. */
const STEP_TIME: Millis = 1000;

export function compareSegments(settings: EthernetSettings): RoundRobinExperiment<EthernetRow> {
  const next = randomStreams(settings.seed);
  return new RoundRobinExperiment(
    settings.stations.map((stations) => new EthernetCell({ ...settings, stations }, next())),
    PARTS,
  );
}

class EthernetCell implements RoundRobinCell<EthernetRow> {
  readonly #segment: EthernetSegment;
  readonly #stations: number;
  readonly #predicted: number | undefined;
  readonly #part: Millis;
  #timeInPart: Millis = 0;

  constructor(
    { stations, frame, load, backOff, time }: Omit<EthernetSettings, 'stations'> & { stations: number },
    random: Random,
  ) {
    this.#segment = new EthernetSegment({ stations, frame, load, backOff, random });
    this.#stations = stations;
    this.#predicted = load === Number.POSITIVE_INFINITY ? predictEfficiency(stations, frame) : undefined;
    this.#part = time / PARTS;
  }

  run(): boolean {
    const time = Math.min(STEP_TIME, this.#part - this.#timeInPart);
    this.#segment.run(time);
    this.#timeInPart += time;
    if (this.#timeInPart < this.#part) return false;
    this.#timeInPart = 0;
    return true;
  }

  row(): EthernetRow | undefined {
    const figures = this.#segment.figures();
    if (figures.time === 0) return undefined;
    return { stations: this.#stations, ...figures, predicted: this.#predicted };
  }
}
