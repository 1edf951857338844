import type { EventFrame, FrameSource } from '../api/admin-operations.ts';
import type { RequestsFrame, StatusFrame, TimelineEvent } from '../api/response-schemas.ts';
import type { EndedRequest } from '../../telemetry/history/recent-requests.ts';
import { toTimelineEvent, toRequestRow } from './admin-rows.ts';
import type { ProcessGroup } from './process-api.ts';

/** Maximum number of requests in a frame. */
const MAX_FRAME_REQUESTS = 20;

/** Produces frames with what is new since the previous frame. */
export class LiveStatus implements FrameSource {
  readonly #processes: ProcessGroup;
  readonly #fullStatus: () => Promise<StatusFrame>;
  /** By process: the last timeline entry and the number of ended requests that were sent. */
  readonly #lastEventSent = new Map<number, number>();
  readonly #lastEndedSent = new Map<number, number>();
  #frames = 0;

  constructor(processes: ProcessGroup, fullStatus: () => Promise<StatusFrame>) {
    this.#processes = processes;
    this.#fullStatus = fullStatus;
  }

  async nextFrame(): Promise<EventFrame> {
    const isFirst = this.#frames === 0;
    const isFullFrame = this.#frames % 2 === 0;
    this.#frames += 1;
    const [status, entries, requests] = await Promise.all([
      isFullFrame ? this.#fullStatus() : undefined,
      this.#newEvents(isFirst),
      this.#newRequests(isFirst),
    ]);
    return {
      ...(status === undefined ? {} : { status }),
      timelineEvents: entries,
      ...(requests === undefined ? {} : { requests }),
    };
  }

  /** The first frame has no events, because viewers load the timeline by themselves. */
  async #newEvents(isFirst: boolean): Promise<TimelineEvent[]> {
    const lastSentOf = (process: number): number => this.#lastEventSent.get(process) ?? 0;
    const answers = await this.#processes.query('timeline', (process) => ({ since: lastSentOf(process) }));
    const fresh = [...answers].flatMap(([process, entries]) => {
      this.#lastEventSent.set(process, entries.at(-1)?.order ?? lastSentOf(process));
      return isFirst ? [] : entries.map((entry) => ({ process, entry }));
    });
    return fresh
      .toSorted((a, b) => a.entry.at - b.entry.at)
      .map(({ process, entry }) => toTimelineEvent(entry, process));
  }

  async #newRequests(isFirst: boolean): Promise<RequestsFrame | undefined> {
    const answers = await this.#processes.query('requests', () => ({ limit: MAX_FRAME_REQUESTS }));
    const fresh: EndedRequest[] = [];
    let ended = 0;
    for (const [process, found] of answers) {
      const alreadySent = this.#lastEndedSent.get(process) ?? (isFirst ? found.ended : 0);
      this.#lastEndedSent.set(process, found.ended);
      ended += found.ended - alreadySent;
      fresh.push(...found.requests.slice(0, found.ended - alreadySent));
    }
    if (ended === 0) return undefined;
    const newest = fresh.toSorted((a, b) => requestEndTime(b) - requestEndTime(a)).slice(0, MAX_FRAME_REQUESTS);
    return { requests: newest.map(toRequestRow), more: ended - newest.length };
  }
}

export function requestEndTime({ at, record }: EndedRequest): number {
  return at + record.took;
}
