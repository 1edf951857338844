import type { Answers, QuestionTo, Station, StationName, Stations } from './process-api.ts';

/** Of a process that is alone. */
export class OwnStations implements Stations {
  readonly #station: Station;

  constructor(station: Station) {
    this.#station = station;
  }

  async ask<K extends StationName>(name: K, question: (station: number) => QuestionTo<K>): Promise<Answers<K>> {
    return new Map([[0, await this.#station[name](question(0))]]);
  }
}
