import type { Millis } from '../exchange/attempt-outcome.ts';

/** Samples that count: the median of so few follows a change within five answers. */
const WINDOW = 9;
/** With fewer, one slow answer would speak for all. */
const LEAST = 3;

/**
 * How long a write usually takes to be answered: the median of the last nine. What has less time left is not worth an attempt. A median
 * and no mean, for one slow answer must not cost the writes after it their retries.
 */
export class AnswerTime {
  readonly #samples: Millis[] = [];
  #next = 0;
  #median: Millis | undefined = 0;

  /** @param took from the send to the head of an answer to the write */
  add(took: Millis): void {
    this.#samples[this.#next] = took;
    this.#next = (this.#next + 1) % WINDOW;
    this.#median = undefined;
  }

  /** 0 where fewer than three answers are known. One function for all: it holds on to no request. */
  readonly get = (): Millis => (this.#median ??= this.#computeMedian());

  /** Of an even number the lower one of the two in the middle. */
  #computeMedian(): Millis {
    if (this.#samples.length < LEAST) return 0;
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return sorted[(sorted.length - 1) >> 1] ?? 0;
  }
}

/** By route: paths of one upstream may differ in what they take. */
export class AnswerTimes {
  readonly #times = new Map<string, AnswerTime>();

  of(route: string): AnswerTime {
    const known = this.#times.get(route);
    if (known !== undefined) return known;
    const made = new AnswerTime();
    this.#times.set(route, made);
    return made;
  }
}
