import { NO_COUNTS } from '../../telemetry/metrics/request-counts.ts';
import { Timeline } from '../../telemetry/history/timeline.ts';
import type { ClientsView, Scope } from '../../core/events/proxy-events.ts';
import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Lender } from '../../sharing/workers/limit-server.ts';
import type {
  AnswerOf,
  Answers,
  QuestionTo,
  RequestsFound,
  Station,
  StationName,
  Stations,
} from '../../admin/operations/process-api.ts';
import { lookAtNested, NOTHING_FELT, surveyLimits } from '../../admin/operations/limit-group-summary.ts';
import type { Workers } from './worker-supervisor.ts';

export interface PrimaryStationParts {
  readonly lender: Lender;
  readonly clock: Clock;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly scopeOf: (upstream: string) => Scope | undefined;
  readonly nestedAt: (upstream: string) => Iterable<readonly [name: string, scope: Scope]>;
  /** Something may be due at the lender. */
  readonly rearm: () => void;
}

/** The primary has no clients of its own. */
export const NOBODY: ClientsView = {
  tracked: 0,
  byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
  allowance: { min: 1, mean: 1 },
};
const NO_REQUESTS: RequestsFound = { ended: 0, requests: [] };

/** The station of a primary: it knows the limits that it lends, and serves nobody. */
export class PrimaryStation implements Station {
  readonly #parts: PrimaryStationParts;
  readonly #timeline: Timeline;

  constructor(parts: PrimaryStationParts) {
    this.#parts = parts;
    this.#timeline = new Timeline(parts.wallClock);
  }

  get listen(): Timeline['listen'] {
    return this.#timeline.listen;
  }

  look(): AnswerOf<'look'> {
    const { lender, clock, scopeOf, nestedAt } = this.#parts;
    const now = clock.now();
    const upstreams = [...surveyLimits(lender.limits(now), now, scopeOf)].map(([name, survey]) => {
      const { limits, nearest } = survey.get('') ?? NOTHING_FELT;
      return {
        name,
        scope: scopeOf(name) ?? 'upstream',
        limits,
        nearest: nearest?.view(now),
        // Who waits and what is under way, the workers tell.
        nested: lookAtNested(survey, nestedAt(name), now).map((each) => ({ ...each, queued: 0, inFlight: 0 })),
        ...SERVES_NOBODY,
      };
    });
    return { counts: NO_COUNTS, upstreams, endpoints: [], clients: NOBODY, troubled: [], isDegraded: false };
  }

  clients(): AnswerOf<'clients'> {
    return { tracked: 0, matching: 0, clients: [] };
  }

  requests(): AnswerOf<'requests'> {
    return NO_REQUESTS;
  }

  moments({ since }: QuestionTo<'moments'>): AnswerOf<'moments'> {
    return this.#timeline.since(since);
  }

  explain(): undefined {
    return undefined;
  }

  steer({ upstream, order }: QuestionTo<'steer'>): null {
    const { lender, clock, scopeOf, rearm } = this.#parts;
    if (scopeOf(upstream) === undefined) return null; // forgotten meanwhile
    lender.steer(upstream, order, clock.now());
    rearm();
    return null;
  }

  reset({ client }: QuestionTo<'reset'>): readonly string[] {
    this.#parts.lender.forgive(client);
    return [];
  }
}

const SERVES_NOBODY = { queued: 0, inFlight: 0, budget: 1 } as const;

/** That of the primary, and those of its workers by their numbers. */
export class ClusterStations implements Stations {
  readonly #own: Station;
  readonly #workers: Workers;

  constructor(own: Station, workers: Workers) {
    this.#own = own;
    this.#workers = workers;
  }

  async ask<K extends StationName>(name: K, question: (station: number) => QuestionTo<K>): Promise<Answers<K>> {
    // The primary first: what it decides, workers hear of by the same channel.
    const own = await this.#own[name](question(0));
    const answers = await this.#workers.ask(name, question);
    return new Map([[0, own], ...answers]);
  }
}
