import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import type { Experiment } from '../experiment.ts';
import type { Candidate, FitRow } from './replay-candidate.ts';
import type { Disorder } from './arrival-sorter.ts';
import { InOrder } from './arrival-sorter.ts';
import type { LogReader, Skipped } from './logged-request.ts';
import type { Inferred, KnownLimit } from './infer-bucket.ts';
import { BucketSearch } from './infer-bucket.ts';
import type { Surveyed } from './log-survey.ts';
import { fitUpstream, Survey } from './log-survey.ts';

export interface FitSettings {
  /** Opens the log anew, from its beginning. */
  readonly open: () => LogReader;
  readonly known: KnownLimit;
  /** Makes the policies for the upstream that fits the log. */
  readonly candidates: (upstream: UpstreamSpec) => readonly Candidate[];
}

/**
 * What has been done with the log: it is looked at, its limit is searched, it is played, to its end. `disordered`: it was looked
 * at, and that is all, as too many of its lines are out of order.
 */
export type FitStage = 'looking' | 'searching' | 'playing' | 'played' | 'disordered';

export interface Fitted {
  readonly stage: FitStage;
  readonly surveyed: Surveyed;
  /** Lines of the log that were no requests. */
  readonly skipped: number;
  readonly firstSkipped: Skipped | undefined;
  /** Requests of it that were none to an upstream. */
  readonly aside: number;
  readonly disorder: Disorder;
  /** The limit that was found; undefined while it is searched, and where there is none. */
  readonly inferred: Inferred | undefined;
  /** Undefined until the log is played. */
  readonly upstream: UpstreamSpec | undefined;
  readonly rows: readonly FitRow[];
}

/**
 * Reads a log twice: to see what upstream would have answered so, and to play its traffic to that upstream through one policy
 * and another, all at once. Memory does not grow with the log.
 */
export class Fit implements Experiment<Fitted> {
  readonly #settings: FitSettings;
  readonly #survey: Survey;
  #reader: LogReader;
  #order: InOrder;
  /** What the reader said when all had been looked at. */
  #read: Pick<LogReader, 'skipped' | 'firstSkipped' | 'aside'> | undefined;
  #disorder: Disorder | undefined;
  #search: BucketSearch | undefined;
  #inferred: Inferred | undefined;
  #upstream: UpstreamSpec | undefined;
  #candidates: readonly Candidate[] = [];
  #stage: FitStage = 'looking';

  constructor(settings: FitSettings) {
    this.#settings = settings;
    this.#survey = new Survey(settings.known.rate !== undefined);
    this.#reader = settings.open();
    this.#order = new InOrder((logged, at) => this.#survey.add(logged, at));
  }

  get progress(): number {
    // Read is not yet played.
    const part = Math.min(0.999, this.#reader.progress);
    switch (this.#stage) {
      case 'looking':
        return LOOKED * part;
      case 'searching':
        return LOOKED + (SEARCHED - LOOKED) * (this.#search?.progress ?? 0);
      case 'playing':
        return SEARCHED + (1 - SEARCHED) * part;
      case 'played':
      case 'disordered':
        return 1;
    }
  }

  step(): void {
    if (this.#stage === 'searching') return this.#seek();
    const some = this.#reader.read();
    if (some !== undefined) {
      for (const logged of some) this.#order.add(logged);
      return;
    }
    this.#order.flush();
    if (this.#stage === 'looking') this.#look();
    else this.#end();
  }

  result(): Fitted {
    return {
      stage: this.#stage,
      surveyed: this.#survey.result(),
      ...(this.#read ?? countsOf(this.#reader)),
      // Played, they come late as they did when they were looked at.
      disorder: this.#disorder ?? this.#order.disorder,
      inferred: this.#inferred,
      upstream: this.#upstream,
      rows: this.#candidates.map((candidate) => candidate.row()),
    };
  }

  /** It has been looked at. */
  #look(): void {
    const disorder = this.#order.disorder;
    this.#read = countsOf(this.#reader);
    this.#disorder = disorder;
    if (disorder.late > MOST_LATE * this.#survey.result().requests) {
      this.#stage = 'disordered';
    } else {
      this.#stage = 'searching';
      this.#search = new BucketSearch(this.#survey.stretches(), this.#settings.known);
    }
  }

  #seek(): void {
    const search = this.#search;
    if (search !== undefined && search.progress < 1) return search.step();
    this.#inferred = search?.result();
    this.#search = undefined;
    this.#play();
  }

  #play(): void {
    const upstream = fitUpstream(this.#survey.result(), this.#inferred, this.#settings.known);
    const candidates = this.#settings.candidates(upstream);
    this.#stage = 'playing';
    this.#upstream = upstream;
    this.#candidates = candidates;
    this.#reader = this.#settings.open();
    this.#order = new InOrder((logged, at) => {
      for (const candidate of candidates) candidate.arrive(logged, at);
    });
  }

  #end(): void {
    for (const candidate of this.#candidates) candidate.finish();
    this.#stage = 'played';
  }
}

function countsOf({ skipped, firstSkipped, aside }: LogReader): Pick<LogReader, 'skipped' | 'firstSkipped' | 'aside'> {
  return { skipped, firstSkipped, aside };
}

/** The share of lines that may be out of order: it is by that much at most that a rate is another than it was. */
const MOST_LATE = 0.01;
/** How far it has come when the log has been looked at, and when a limit has been found: playing it takes longest. */
const LOOKED = 0.15;
const SEARCHED = 0.2;
