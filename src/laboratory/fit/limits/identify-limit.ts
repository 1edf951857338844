import type { Experiment } from '../../experiment.ts';
import type { InferredBucket } from '../infer-bucket.ts';
import type { LogSegment } from '../log-excerpt.ts';
import { PASSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';
import { joinSegments } from './attempt-series.ts';
import { fitFixedWindow } from './fit-fixed-window.ts';
import { fitInFlight } from './fit-in-flight.ts';
import { fitQueue } from './fit-queue.ts';
import { fitSharing } from './fit-sharing.ts';
import { areLevelsHidden } from './in-flight-levels.ts';
import { fitSlidingWindow } from './fit-sliding-window.ts';
import { fitTokenBucket } from './fit-token-bucket.ts';
import type { LimitFit } from './limit-fit.ts';
import type { ServiceFit } from './service-fit.ts';
import type { LimitVerdict, RankedLimit } from './limit-verdict.ts';
import { judgeLimits, rankLimits } from './limit-verdict.ts';
import { countPredicted, countWrong, tabulate } from './prediction-table.ts';

/** The kinds of limit that were tried on a log. */
export interface IdentifiedLimit extends LimitVerdict {
  /** The likeliest first. */
  readonly ranking: readonly RankedLimit[];
  /** Undefined if the log has no times, or too few requests waited. */
  readonly queue: ServiceFit | undefined;
  /** The same for a service that works on all requests at once. */
  readonly sharing: ServiceFit | undefined;
  /** Whether the log has times: without them, neither requests in flight nor a queue show. */
  readonly hasTimes: boolean;
  readonly passed: number;
  readonly refused: number;
}

/** Tries each kind of limit on the attempts of a log, a kind at a step. */
export class LimitIdentification implements Experiment<IdentifiedLimit> {
  readonly #series: AttemptSeries;
  readonly #steps: readonly (() => void)[];
  readonly #fits: LimitFit[] = [];
  #queue: ServiceFit | undefined;
  #sharing: ServiceFit | undefined;
  #done = 0;

  readonly #hasWholeSeconds: boolean;

  /**
   * @param bucket the token bucket that reproduces the counts of the log; undefined without one
   * @param hasWholeSeconds whether the times of the log are too coarse to tell a kind
   */
  constructor(segments: readonly LogSegment[], bucket: InferredBucket | undefined, hasWholeSeconds = false) {
    this.#hasWholeSeconds = hasWholeSeconds;
    const series = joinSegments(segments);
    this.#series = series;
    const add = (fit: LimitFit | undefined): void => {
      if (fit !== undefined) this.#fits.push(fit);
    };
    const limits =
      series.refused === 0
        ? []
        : [
            () => add(bucket === undefined ? undefined : fitTokenBucket(series, bucket)),
            () => add(fitFixedWindow(series)),
            () => add(fitSlidingWindow(series)),
            () => add(fitInFlight(series)),
          ];
    this.#steps = [...limits, () => (this.#queue = fitQueue(series)), () => (this.#sharing = fitSharing(series))];
  }

  get progress(): number {
    return this.#done / this.#steps.length;
  }

  step(): void {
    this.#steps[this.#done]?.();
    this.#done = Math.min(this.#steps.length, this.#done + 1);
  }

  result(): IdentifiedLimit {
    const { passed, refused, took } = this.#series;
    const ranking = rankLimits(this.#series, dropDisguised(this.#series, this.#fits));
    const [queue, sharing] = [this.#queue, this.#sharing];
    const hasTimes = took.some((time) => !Number.isNaN(time));
    const verdict = judgeLimits(ranking, { queue, sharing, isHidden: areLevelsHidden(this.#series) }, passed, refused);
    const isCoarse = this.#hasWholeSeconds && verdict.confidence !== 'few' && verdict.kind !== 'none';
    const { confidence } = isCoarse ? COARSE : verdict;
    return { ...verdict, confidence, ranking, queue, sharing, hasTimes, passed, refused };
  }
}

const COARSE: Pick<LimitVerdict, 'confidence'> = { confidence: 'coarse' };
/** A window as long as a request, to within this share, is a limit on requests in flight seen differently. */
const SAME_LENGTH = 0.03;

/**
 * Where all requests take equally long, a limit on requests in flight is a sliding window of that length. The simpler one is kept,
 * if it predicts the log.
 */
function dropDisguised(series: AttemptSeries, fits: readonly LimitFit[]): readonly LimitFit[] {
  const inFlight = fits.find(({ limit }) => limit.kind === 'concurrency');
  const sliding = fits.find(({ limit }) => limit.kind === 'sliding-window');
  if (inFlight === undefined || sliding?.limit.kind !== 'sliding-window') return fits;
  const times = series.took.filter((time, i) => series.outcomes[i] === PASSED && !Number.isNaN(time)).toSorted();
  const median = times[times.length >> 1] ?? 0;
  const table = tabulate(series, inFlight.predictions);
  const isSame = Math.abs(sliding.limit.window - median) <= Math.max(1, SAME_LENGTH * median);
  return isSame && countWrong(table) < SAME_LENGTH * countPredicted(table)
    ? fits.filter((each) => each !== sliding)
    : fits;
}
