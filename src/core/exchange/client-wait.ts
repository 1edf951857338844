import type { Millis } from '../scalars.ts';
import type { LatencyEstimate } from '../retry/latency-estimates.ts';
import type { ErrorOutcome } from './attempt-outcome.ts';
import type { ClientTimeouts, UpstreamClient } from './client-timeouts.ts';

/** How long the client of one exchange waits for its response, as far as that shows the client's timeout. */
export class ClientWait {
  readonly #timeouts: ClientTimeouts;
  readonly #client: UpstreamClient;
  /** The end of the request's body; undefined before it, and if the body is not kept whole: it may still be arriving. */
  #since: Millis | undefined;
  #isDetached = false;
  readonly #times: LatencyEstimate | undefined;

  /** @param times how long the upstream takes to respond to such a request; absent if that does not matter, or for a write */
  constructor(timeouts: ClientTimeouts, client: UpstreamClient, times?: LatencyEstimate) {
    this.#timeouts = timeouts;
    this.#client = client;
    this.#times = times;
  }

  begin(now: Millis): void {
    this.#since = now;
  }

  /** The client has disconnected. Returns whether because of its timeout. */
  onDisconnected(now: Millis): boolean {
    return this.#since !== undefined && this.#timeouts.onAbandoned(this.#client, now - this.#since, now);
  }

  /** The client has disconnected during an attempt. Returns the outcome, which says so if the reason is the client's timeout. */
  onAborted(outcome: ErrorOutcome, now: Millis): ErrorOutcome {
    if (!this.onDisconnected(now)) return outcome;
    const timedOut = { ...outcome, isClientTimeout: true };
    this.#times?.onReadEnd(timedOut);
    return timedOut;
  }

  /** The client has disconnected, and its write is finished without it. */
  onDetached(now: Millis): void {
    this.onDisconnected(now);
    this.#isDetached = true;
  }

  /** The exchange ends with a response to the client, whatever it is. */
  onAnswered(now: Millis): void {
    if (this.#since !== undefined && !this.#isDetached) this.#timeouts.onAnswered(this.#client, now - this.#since);
  }
}
