import type { EndpointFailure } from '../../core/events/gate-views.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Clock, Millis } from '../../core/scalars.ts';

/** A failure is passed on at most once in this time for each upstream. */
const REPORT_INTERVAL: Millis = 1000;

/** The last failed attempt of each upstream. The names come from the configuration. */
export class LastFailures {
  readonly #clock: Clock;
  readonly #report: (upstream: string, failure: EndpointFailure) => void;
  readonly #last = new Map<string, EndpointFailure>();
  readonly #reportedAt = new Map<string, Millis>();

  /** @param report called with the first failure of an upstream, and with the last one at most once a second */
  constructor(clock: Clock, report: (upstream: string, failure: EndpointFailure) => void = () => undefined) {
    this.#clock = clock;
    this.#report = report;
  }

  of(upstream: string): EndpointFailure | undefined {
    return this.#last.get(upstream);
  }

  /** Ignores failures of this process or of the client. */
  onAttempt({ upstream, code, cause }: Extract<ProxyEvent, { type: 'attempt' }>): void {
    if (typeof code === 'number' ? code < 500 : code === 'aborted' || code === 'too_many_files') return;
    const at = this.#clock.now();
    const failure: EndpointFailure =
      typeof code === 'number' ? { at, reason: 'status', code: String(code) } : { at, reason: code, code: cause };
    this.#last.set(upstream, failure);
    if (at - (this.#reportedAt.get(upstream) ?? Number.NEGATIVE_INFINITY) < REPORT_INTERVAL) return;
    this.#reportedAt.set(upstream, at);
    this.#report(upstream, failure);
  }
}
