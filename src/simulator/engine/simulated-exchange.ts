import type { SendStep } from '../../core/exchange/steps.ts';
import type { ExchangeEffects } from '../../core/exchange/effects.ts';
import { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { Gate } from '../../core/admission/gate.ts';
import { formatRetryAfter } from '../../core/hints/format-retry-after.ts';
import type { AdmissionCallback } from '../../core/admission/ticket.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { GateTimer } from './gate-timer.ts';
import type { ArrivingRequest } from './arrival-process.ts';
import { UPSTREAM_NAME } from '../scenario.ts';
import type { UpstreamDecision } from '../upstream/upstream-model.ts';
import type { ScheduledEvent, Simulator } from './simulator.ts';

interface SimulatedExchangeParts {
  readonly simulator: Simulator;
  readonly gate: Gate;
  readonly timer: GateTimer;
  readonly request: ArrivingRequest;
}

/** The simulator's interpreter of one exchange. */
export class SimulatedExchange implements ExchangeEffects, ScheduledEvent {
  readonly #simulator: Simulator;
  readonly #driver: ExchangeDriver;
  readonly #timer: GateTimer;
  readonly #request: ArrivingRequest;
  readonly #arrivedAt: Millis;
  #sentAt: Millis = 0;
  #timeout: Millis = 0;
  #service: Millis = 0;
  /** The kind of its event in the queue; it never has more than one. */
  #next: 'arrive' | 'upstream' | 'leave' | 'answer' | 'wake' = 'arrive';
  #decision: UpstreamDecision | undefined;
  #status = 0;
  #hints: Hints | undefined;

  constructor({ simulator, gate, timer, request }: SimulatedExchangeParts) {
    const { client, weight, facts, group } = request;
    this.#simulator = simulator;
    this.#timer = timer;
    this.#request = request;
    this.#arrivedAt = simulator.now();
    const settle: AdmissionCallback = (admission, now) => this.#driver.onAdmission(admission, now);
    const ticket = new Ticket(UPSTREAM_NAME, client, weight, simulator.limitsOf(client, group), settle, {
      arrivedAt: this.#arrivedAt,
    });
    this.#driver = new ExchangeDriver({
      generator: simulator.script(facts, simulator.scenario.policy.plan, simulator.random, this.#arrivedAt),
      gate,
      ticket,
      effects: this,
      clock: simulator,
      listen: simulator.listen,
    });
  }

  get isProxyEvent(): boolean {
    return this.#next !== 'upstream' && this.#next !== 'leave';
  }

  readBody(): void {
    this.#driver.onBodyRead(true);
  }

  /** No two simulated requests share a key. */
  claim(): void {
    this.#driver.onClaimed(undefined);
  }

  send({ timeout }: SendStep): void {
    this.#sentAt = this.#simulator.now();
    this.#timeout = timeout;
    this.#next = 'upstream';
    this.#simulator.schedule(this.#sentAt + this.#simulator.scenario.networkLatency, this);
  }

  sleep(ms: Millis): void {
    this.#next = 'wake';
    this.#simulator.schedule(this.#simulator.now() + ms, this);
  }

  rearmGateTimer(): void {
    this.#timer.rearm();
  }

  finish(verdict: ExchangeVerdict): void {
    const now = this.#simulator.now();
    const { group, member, clients } = this.#request;
    if (verdict.kind === 'forward') this.#driver.onResponseEnd();
    else this.#status = 0;
    const retryAfterMs =
      verdict.kind === 'refuse' ? this.#roundRetryAfter(verdict.retryAfterMs ?? 0) : this.#forwardedRetryAfter(verdict);
    if (retryAfterMs !== undefined) clients.onRetryAfter(member, now + retryAfterMs);
    const took = now - this.#arrivedAt;
    this.#simulator.observer.onRequestEnd({
      group,
      member,
      verdict,
      status: this.#status,
      took,
      service: this.#service,
    });
  }

  // A simulated client never disconnects, and a simulated response has no body.
  cancelSend(): boolean {
    return true;
  }
  stopClaim(): void {}
  lookUpKey(): void {}
  cancelSleep(): void {}
  discardResponse(): void {}

  run(): void {
    switch (this.#next) {
      case 'arrive':
        return this.#driver.start();
      case 'upstream':
        return this.#reachUpstream();
      case 'leave':
        this.#simulator.upstream.release(this.#simulator.now(), this.#request.target);
        this.#next = 'answer';
        return this.#simulator.schedule(this.#simulator.now() + this.#simulator.scenario.networkLatency, this);
      case 'answer':
        return this.#receiveAnswer();
      case 'wake':
        return this.#driver.onWake();
    }
  }

  /** In whole seconds, as the proxy writes it. */
  #roundRetryAfter(retryAfter: Millis): Millis {
    return 1000 * Number(formatRetryAfter(retryAfter, this.#simulator.random));
  }

  /** The Retry-After of the upstream's rejection, which is forwarded unchanged; the proxy's where it has none. */
  #forwardedRetryAfter(verdict: ExchangeVerdict): Millis | undefined {
    if (verdict.kind !== 'forward') return undefined;
    // Draws only where the value is used, so that all else of a run stays the same.
    if (verdict.retryAfterMs !== undefined) {
      return this.#request.clients.honoursRetryAfter ? this.#roundRetryAfter(verdict.retryAfterMs) : undefined;
    }
    return this.#status === 429 ? this.#hints?.retryAfterMs : undefined;
  }

  #reachUpstream(): void {
    const { networkLatency } = this.#simulator.scenario;
    const now = this.#simulator.now();
    const decision = this.#simulator.decide(this.#request.target);
    this.#decision = decision;
    const latency = decision.kind === 'down' ? 0 : decision.latency;
    this.#service = 2 * networkLatency + latency;
    if (decision.kind === 'serve' || decision.kind === 'fail') {
      this.#next = 'leave';
      this.#simulator.schedule(now + latency, this);
    } else {
      this.#next = 'answer';
      this.#simulator.schedule(now + latency + networkLatency, this);
    }
  }

  /**
   * A response later than the attempt's timeout is reported as a timeout, at its own time: the upstream was busy for
   * that long.
   */
  #receiveAnswer(): void {
    const took = this.#simulator.now() - this.#sentAt;
    const outcome: AttemptOutcome =
      took > this.#timeout ? { kind: 'error', reason: 'timeout', sent: true, took } : this.#toOutcome(took);
    this.#status = outcome.kind === 'response' ? outcome.status : 0;
    this.#driver.onOutcome(outcome);
  }

  #toOutcome(took: Millis): AttemptOutcome {
    const decision = this.#decision;
    if (decision === undefined) throw new Error('an answer to nothing');
    if (decision.kind === 'down' && decision.how !== '503') {
      const sent = decision.how === 'reset';
      return { kind: 'error', reason: sent ? 'reset' : 'connect', sent, took };
    }
    const hints = this.#simulator.upstream.hints(decision, this.#simulator.now());
    this.#hints = hints;
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
