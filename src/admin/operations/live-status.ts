import type { Frame, Watch } from '../api/admin-operations.ts';
import type { RequestsFrame, StatusFrame, TimelineEvent } from '../api/response-schemas.ts';
import type { EndedRequest } from '../../telemetry/history/recent-requests.ts';
import { describeMoment, describeRequest } from './admin-rows.ts';
import type { Stations } from './process-api.ts';

/** Requests that one frame tells of. */
const MOST_REQUESTS = 20;

/** What is new, again and again, for as long as somebody watches. */
export class Watching implements Watch {
  readonly #stations: Stations;
  readonly #lookAll: () => Promise<StatusFrame>;
  /** What has been told of each station. */
  readonly #toldMoment = new Map<number, number>();
  readonly #toldEnded = new Map<number, number>();
  #frames = 0;

  constructor(stations: Stations, lookAll: () => Promise<StatusFrame>) {
    this.#stations = stations;
    this.#lookAll = lookAll;
  }

  async frame(): Promise<Frame> {
    const isFirst = this.#frames === 0;
    const isWhole = this.#frames % 2 === 0;
    this.#frames += 1;
    const [status, moments, requests] = await Promise.all([
      isWhole ? this.#lookAll() : undefined,
      this.#newMoments(isFirst),
      this.#newRequests(isFirst),
    ]);
    return {
      ...(status === undefined ? {} : { status }),
      moments,
      ...(requests === undefined ? {} : { requests }),
    };
  }

  /** What was before the first frame, the timeline tells. */
  async #newMoments(isFirst: boolean): Promise<TimelineEvent[]> {
    const toldOf = (station: number): number => this.#toldMoment.get(station) ?? 0;
    const answers = await this.#stations.ask('moments', (station) => ({ since: toldOf(station) }));
    const fresh = [...answers].flatMap(([station, moments]) => {
      this.#toldMoment.set(station, moments.at(-1)?.order ?? toldOf(station));
      return isFirst ? [] : moments.map((moment) => ({ station, moment }));
    });
    return fresh
      .toSorted((a, b) => a.moment.at - b.moment.at)
      .map(({ station, moment }) => describeMoment(moment, station));
  }

  async #newRequests(isFirst: boolean): Promise<RequestsFrame | undefined> {
    const answers = await this.#stations.ask('requests', () => ({ limit: MOST_REQUESTS }));
    const fresh: EndedRequest[] = [];
    let ended = 0;
    for (const [station, found] of answers) {
      const told = this.#toldEnded.get(station) ?? (isFirst ? found.ended : 0);
      this.#toldEnded.set(station, found.ended);
      ended += found.ended - told;
      fresh.push(...found.requests.slice(0, found.ended - told));
    }
    if (ended === 0) return undefined;
    const newest = fresh.toSorted((a, b) => endOf(b) - endOf(a)).slice(0, MOST_REQUESTS);
    return { requests: newest.map(describeRequest), more: ended - newest.length };
  }
}

export function endOf({ at, record }: EndedRequest): number {
  return at + record.took;
}
