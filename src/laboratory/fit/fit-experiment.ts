import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import type { Experiment } from '../experiment.ts';
import type { ReplayCandidate, FitRow } from './replay-candidate.ts';
import type { LogDisorder } from './arrival-sorter.ts';
import { ArrivalSorter } from './arrival-sorter.ts';
import type { LogSegment } from './log-excerpt.ts';
import type { LogReader, SkippedLine } from './logged-request.ts';
import type { InferredBucket, KnownLimit } from './infer-bucket.ts';
import { BucketSearch } from './infer-bucket.ts';
import type { IdentifiedLimit } from './limits/identify-limit.ts';
import { LimitIdentification } from './limits/identify-limit.ts';
import type { LogSummary } from './log-survey.ts';
import { fitUpstream } from './fit-upstream.ts';
import { LogSurvey } from './log-survey.ts';

export interface FitSettings {
  /** Opens the log again, from its beginning. */
  readonly openLog: () => LogReader;
  readonly known: KnownLimit;
  /** Makes the policies to replay, for the upstream that fits the log. */
  readonly candidates: (upstream: UpstreamSpec) => readonly ReplayCandidate[];
}

/**
 * The stage of the experiment: the log is surveyed, its limit is inferred, it is replayed, done. `disordered`: the log was
 * surveyed only, because too many lines are out of order.
 */
export type FitStage = 'looking' | 'searching' | 'playing' | 'played' | 'disordered';

export interface FitResult {
  readonly stage: FitStage;
  readonly surveyed: LogSummary;
  /** Lines of the log that were not requests. */
  readonly skipped: number;
  readonly firstSkipped: SkippedLine | undefined;
  /** Requests that were not meant for an upstream. */
  readonly aside: number;
  readonly disorder: LogDisorder;
  /** The inferred token bucket; undefined before it is inferred, and if there is none. */
  readonly inferred: InferredBucket | undefined;
  /** The kinds of limit that were tried; undefined before, and if the limit is known. */
  readonly identified: IdentifiedLimit | undefined;
  /** Undefined until the log is replayed. */
  readonly upstream: UpstreamSpec | undefined;
  readonly rows: readonly FitRow[];
}

/**
 * Reads a log twice: to infer the upstream that would have answered so, and to replay its traffic to that upstream through all
 * policies at once. Memory does not grow with the log.
 */
export class FitExperiment implements Experiment<FitResult> {
  readonly #settings: FitSettings;
  readonly #survey: LogSurvey;
  #reader: LogReader;
  #sorter: ArrivalSorter;
  /** The reader's counts at the end of the survey. */
  #readCounts: Pick<LogReader, 'skipped' | 'firstSkipped' | 'aside'> | undefined;
  #disorder: LogDisorder | undefined;
  #segments: readonly LogSegment[] = [];
  #search: BucketSearch | undefined;
  #inferred: InferredBucket | undefined;
  #identification: LimitIdentification | undefined;
  #identified: IdentifiedLimit | undefined;
  #upstream: UpstreamSpec | undefined;
  #candidates: readonly ReplayCandidate[] = [];
  #stage: FitStage = 'looking';

  constructor(settings: FitSettings) {
    this.#settings = settings;
    this.#survey = new LogSurvey(settings.known.rate !== undefined);
    this.#reader = settings.openLog();
    this.#sorter = new ArrivalSorter((logged, at) => this.#survey.add(logged, at));
  }

  get progress(): number {
    // A line that was read may not be replayed yet.
    const part = Math.min(0.999, this.#reader.progress);
    switch (this.#stage) {
      case 'looking':
        return SURVEY_PROGRESS * part;
      case 'searching':
        return SURVEY_PROGRESS + ((SEARCH_PROGRESS - SURVEY_PROGRESS) / 2) * this.#searchProgress();
      case 'playing':
        return SEARCH_PROGRESS + (1 - SEARCH_PROGRESS) * part;
      case 'played':
      case 'disordered':
        return 1;
    }
  }

  step(): void {
    if (this.#stage === 'searching') return this.#stepSearch();
    const some = this.#reader.read();
    if (some !== undefined) {
      for (const logged of some) this.#sorter.add(logged);
      return;
    }
    this.#sorter.flush();
    if (this.#stage === 'looking') this.#finishSurvey();
    else this.#finishReplay();
  }

  result(): FitResult {
    return {
      stage: this.#stage,
      surveyed: this.#survey.result(),
      ...(this.#readCounts ?? readerCounts(this.#reader)),
      // The replay has the same late lines as the survey.
      disorder: this.#disorder ?? this.#sorter.disorder,
      inferred: this.#inferred,
      identified: this.#identified,
      upstream: this.#upstream,
      rows: this.#candidates.map((candidate) => candidate.row()),
    };
  }

  /** The survey is complete. */
  #finishSurvey(): void {
    const disorder = this.#sorter.disorder;
    this.#readCounts = readerCounts(this.#reader);
    this.#disorder = disorder;
    if (disorder.late > MAX_LATE_SHARE * this.#survey.result().requests) {
      this.#stage = 'disordered';
    } else {
      this.#stage = 'searching';
      this.#segments = this.#survey.segments();
      this.#search = new BucketSearch(this.#segments, this.#settings.known);
    }
  }

  #stepSearch(): void {
    const [search, identification] = [this.#search, this.#identification];
    if (search !== undefined) {
      if (search.progress < 1) return search.step();
      this.#inferred = search.result();
      this.#search = undefined;
      const { rate, burst } = this.#settings.known;
      if (rate !== undefined || burst !== undefined) return this.#startReplay();
      const { hasWholeSeconds } = this.#survey.result();
      this.#identification = new LimitIdentification(this.#segments, this.#inferred, hasWholeSeconds);
    } else if (identification !== undefined) {
      if (identification.progress < 1) return identification.step();
      this.#identified = identification.result();
      this.#identification = undefined;
      this.#startReplay();
    }
  }

  /** From 0 to 2: the token bucket, then the kinds. */
  #searchProgress(): number {
    return this.#search === undefined ? 1 + (this.#identification?.progress ?? 0) : this.#search.progress;
  }

  #startReplay(): void {
    this.#segments = [];
    const upstream = fitUpstream(this.#survey.result(), this.#inferred, this.#settings.known, this.#identified);
    const candidates = this.#settings.candidates(upstream);
    this.#stage = 'playing';
    this.#upstream = upstream;
    this.#candidates = candidates;
    this.#reader = this.#settings.openLog();
    this.#sorter = new ArrivalSorter((logged, at) => {
      for (const candidate of candidates) candidate.arrive(logged, at);
    });
  }

  #finishReplay(): void {
    for (const candidate of this.#candidates) candidate.finish();
    this.#stage = 'played';
  }
}

function readerCounts({
  skipped,
  firstSkipped,
  aside,
}: LogReader): Pick<LogReader, 'skipped' | 'firstSkipped' | 'aside'> {
  return { skipped, firstSkipped, aside };
}

/** The maximum share of lines out of order: it bounds the error of the rates. */
const MAX_LATE_SHARE = 0.01;
/** Progress after the survey and after the inference: the replay takes longest. */
const SURVEY_PROGRESS = 0.15;
const SEARCH_PROGRESS = 0.2;
