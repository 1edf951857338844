import type { AttemptOutcome, ErrorOutcome } from '../exchange/attempt-outcome.ts';
import type { Millis } from '../scalars.ts';

/** The median of nine samples follows a change within five responses. */
const WINDOW = 9;
/** With fewer, one slow response would decide. */
const MIN_SAMPLES = 3;

/**
 * How long the upstream takes to respond, by its last nine responses on a route. A request with less time left is not worth an attempt.
 */
export class LatencyEstimate {
  readonly #times: Millis[] = [];
  #next = 0;
  #sorted: readonly Millis[] | undefined;

  /** @param took from the send to the response head */
  onAnswer(took: Millis): void {
    this.#times[this.#next] = took;
    this.#next = (this.#next + 1) % WINDOW;
    this.#sorted = undefined;
  }

  /** Learns from an attempt of a read. An error may come sooner than any useful response. */
  onReadEnd(outcome: AttemptOutcome): void {
    const { took } = outcome;
    if (outcome.kind === 'response') {
      if (outcome.status < 400) this.onAnswer(took);
    } else if (outcome.sent && isTimeout(outcome) && took > this.usual()) this.onAnswer(took); // at least
  }

  // These are bound to this object, so that one function serves all requests and retains none.

  /**
   * The median, for an even number of times the lower of the two in the middle. 0 until three times are known. A median rather than a
   * mean, because one slow response must not prevent the retries of later writes.
   */
  readonly usual = (): Millis => this.#timeAt((count) => (count - 1) >> 1);

  /** The second longest of nine times: most responses are faster. 0 until three times are known. */
  readonly slow = (): Millis => this.#timeAt((count) => Math.floor(0.9 * (count - 1)));

  #timeAt(indexOf: (count: number) => number): Millis {
    const sorted = (this.#sorted ??= this.#times.toSorted((a, b) => a - b));
    return sorted.length < MIN_SAMPLES ? 0 : (sorted[indexOf(sorted.length)] ?? 0);
  }
}

function isTimeout({ reason, isClientTimeout }: ErrorOutcome): boolean {
  return reason === 'timeout' || isClientTimeout === true;
}

/** The estimates of the routes, whose paths may differ in latency, for writes and for other requests. */
export class LatencyEstimates {
  readonly #writes = new Map<string, LatencyEstimate>();
  readonly #reads = new Map<string, LatencyEstimate>();

  of(route: string, isWrite: boolean): LatencyEstimate {
    const estimates = isWrite ? this.#writes : this.#reads;
    const known = estimates.get(route);
    if (known !== undefined) return known;
    const estimate = new LatencyEstimate();
    estimates.set(route, estimate);
    return estimate;
  }
}
