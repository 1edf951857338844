import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import type { Job } from '../service/service-station.ts';
import type { AcceptedTimes, UpstreamDecision } from '../upstream/upstream-model.ts';
import type { MethodAndPath } from '../upstream/request-match.ts';
import type { ScheduledEvent, Simulator } from './simulator.ts';

/** How an attempt ended for the proxy. */
export interface AttemptEnd {
  readonly outcome: AttemptOutcome;
  /** Those of the response. */
  readonly hints: Hints | undefined;
  /** The part that the network and the upstream took. */
  readonly service: Millis;
  /** The part of it in which the upstream let it wait for others; 0 after a timeout. */
  readonly upstreamWait: Millis;
}

/**
 * An attempt on its way to the upstream, served there, and on its way back. After its timeout, or once its client has disconnected, the
 * proxy no longer waits for it, but the upstream works on.
 */
export class SimulatedAttempt implements ScheduledEvent, Job {
  readonly #simulator: Simulator;
  readonly #target: MethodAndPath;
  readonly #sentAt: Millis;
  readonly #timeout: Millis;
  readonly #onEnd: (end: AttemptEnd) => void;
  /** The kind of its next event. */
  #next: 'arrive' | 'leave' | 'respond' = 'arrive';
  #decision: UpstreamDecision | undefined;
  #arrivedAt: Millis = 0;
  #leftAt: Millis = 0;
  #hasEnded = false;
  work: Millis = 0;
  poolWork: Millis = 0;

  constructor(simulator: Simulator, target: MethodAndPath, timeout: Millis, onEnd: (end: AttemptEnd) => void) {
    this.#simulator = simulator;
    this.#target = target;
    this.#sentAt = simulator.now();
    this.#timeout = timeout;
    this.#onEnd = onEnd;
  }

  start(): void {
    this.#simulator.schedule(this.#sentAt + this.#simulator.scenario.networkLatency, this);
  }

  get isProxyEvent(): boolean {
    return this.#next === 'respond';
  }

  run(): void {
    switch (this.#next) {
      case 'arrive':
        return this.#arrive();
      case 'leave':
        return this.onServed(this.#simulator.now());
      case 'respond':
        return this.#respond();
    }
  }

  /** The proxy no longer waits for it. */
  abandon(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#next !== 'respond') this.#simulator.observer.onAbandoned?.();
  }

  onServed(at: Millis): void {
    this.#leftAt = at;
    this.#simulator.upstream.release(at, this.#target);
    this.#respondAt(at + this.#simulator.scenario.networkLatency);
  }

  #arrive(): void {
    const now = this.#simulator.now();
    const decision = this.#simulator.decide(this.#target);
    this.#decision = decision;
    this.#arrivedAt = now;
    if (decision.kind === 'serve' || decision.kind === 'fail') return this.#serve(decision, now);
    this.#leftAt = now + (decision.kind === 'down' ? 0 : decision.latency);
    const respondsAt = this.#leftAt + this.#simulator.scenario.networkLatency;
    this.#watchTimeout(respondsAt);
    this.#respondAt(respondsAt);
  }

  #serve({ latency, poolLatency = 0 }: AcceptedTimes, now: Millis): void {
    const { station } = this.#simulator;
    this.work = latency;
    this.poolWork = poolLatency;
    if (station !== undefined) {
      this.#watchTimeout(Number.POSITIVE_INFINITY);
      station.arrive(this);
      return;
    }
    this.#next = 'leave';
    this.#simulator.schedule(now + latency, this);
    this.#watchTimeout(now + latency + this.#simulator.scenario.networkLatency);
  }

  #respondAt(at: Millis): void {
    this.#next = 'respond';
    this.#simulator.schedule(at, this);
  }

  /** @param respondsAt when the response is due; Infinity if that is not known yet */
  #watchTimeout(respondsAt: Millis): void {
    const at = this.#sentAt + this.#timeout;
    if (respondsAt <= at || at === Number.POSITIVE_INFINITY) return;
    const event = { isProxyEvent: true, run: () => this.#timeOut() };
    this.#simulator.schedule(Math.max(at, this.#simulator.now()), event);
  }

  #respond(): void {
    if (this.#hasEnded) return;
    const took = this.#simulator.now() - this.#sentAt;
    // Also after a sleep of the proxies' machine: a timer that is due runs before what has arrived meanwhile.
    if (took > this.#timeout) return this.#timeOut();
    const hints = this.#readHints();
    const atUpstream = this.#leftAt - this.#arrivedAt;
    this.#end({
      outcome: this.#toOutcome(took, hints),
      hints,
      service: 2 * this.#simulator.scenario.networkLatency + atUpstream,
      upstreamWait: Math.max(0, atUpstream - this.work - this.poolWork),
    });
  }

  #timeOut(): void {
    if (this.#hasEnded) return;
    const took = this.#simulator.now() - this.#sentAt;
    if (this.#next !== 'respond') this.#simulator.observer.onAbandoned?.();
    this.#end({
      outcome: { kind: 'error', reason: 'timeout', sent: true, took },
      hints: undefined,
      service: Math.min(took, this.#timeout),
      upstreamWait: 0,
    });
  }

  #end(end: AttemptEnd): void {
    this.#hasEnded = true;
    this.#onEnd(end);
  }

  #readHints(): Hints | undefined {
    const decision = this.#decision;
    const hasHeaders = decision !== undefined && (decision.kind !== 'down' || decision.how === '503');
    return hasHeaders ? this.#simulator.upstream.hints(decision, this.#simulator.now()) : undefined;
  }

  #toOutcome(took: Millis, hints: Hints | undefined): AttemptOutcome {
    const decision = this.#decision;
    if (decision === undefined) throw new Error('a response to nothing');
    if (hints === undefined) {
      const sent = decision.kind === 'down' && decision.how === 'reset';
      return { kind: 'error', reason: sent ? 'reset' : 'connect', sent, took };
    }
    const status = statusOf(decision);
    const lacksRetryAfter = (status === 429 || status === 503) && hints.retryAfterMs === undefined;
    return { kind: 'response', status, hints, took, ...(lacksRetryAfter ? { impliedWait: 0 } : {}) };
  }
}

function statusOf(decision: UpstreamDecision): number {
  switch (decision.kind) {
    case 'serve':
      return 200;
    case 'fail':
      return decision.status;
    case 'throttle':
      return 429;
    case 'down':
      return 503;
  }
}
