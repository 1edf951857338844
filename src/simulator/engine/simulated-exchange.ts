import type { SendStep } from '../../core/exchange/steps.ts';
import type { ExchangeEffects } from '../../core/exchange/effects.ts';
import type { ClientTimeouts } from '../../core/exchange/client-timeouts.ts';
import { ClientWait } from '../../core/exchange/client-wait.ts';
import { RequestCosts } from '../../core/cost/request-costs.ts';
import { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { Gate } from '../../core/admission/gate.ts';
import { formatRetryAfter } from '../../core/hints/format-retry-after.ts';
import type { AdmissionCallback } from '../../core/admission/gate-decision.ts';
import type { TicketOptions } from '../../core/admission/ticket-options.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import { isSafe } from '../../core/exchange/request-facts.ts';
import type { LatencyEstimate } from '../../core/retry/latency-estimates.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { GateTimer } from './gate-timer.ts';
import type { ArrivingRequest } from './arrival-process.ts';
import type { ScenarioCost } from '../scenario.ts';
import { UPSTREAM_NAME } from '../scenario.ts';
import type { MethodAndPath } from '../upstream/request-match.ts';
import type { AttemptEnd } from './simulated-attempt.ts';
import { SimulatedAttempt } from './simulated-attempt.ts';
import type { ScheduledEvent, Simulator } from './simulator.ts';

interface SimulatedExchangeParts {
  readonly simulator: Simulator;
  readonly gate: Gate;
  readonly timer: GateTimer;
  readonly clientTimeouts: ClientTimeouts;
  readonly request: ArrivingRequest;
}

/** A ticket that may use each account of the scenario, of a client with a proven name. */
class SimulatedTicket extends Ticket {
  readonly #simulator: Simulator;
  readonly #group: number;

  constructor(
    simulator: Simulator,
    { client, weight, group }: ArrivingRequest,
    settle: AdmissionCallback,
    options: TicketOptions,
  ) {
    const refs = simulator.hasAccounts ? [] : simulator.limitsOf(client, group);
    super(UPSTREAM_NAME, client, weight, refs, settle, options);
    this.#simulator = simulator;
    this.#group = group;
  }

  override get className(): string | undefined {
    return this.#simulator.scenario.clients[this.#group]?.className;
  }

  override get isClientProven(): boolean {
    return true;
  }

  override limitRefsWith(account: string): readonly LimitRef[] {
    return this.#simulator.limitsOf(account, this.#group);
  }
}

function costsOf(policy: ScenarioCost | undefined, { cost = 1 }: MethodAndPath): RequestCosts | undefined {
  if (policy === undefined) return undefined;
  return new RequestCosts('', [policy.rule], () => (policy.isDeclared ? cost : undefined));
}

/** The simulator's interpreter of one exchange. */
export class SimulatedExchange implements ExchangeEffects, ScheduledEvent {
  readonly isProxyEvent = true;
  readonly #simulator: Simulator;
  readonly #driver: ExchangeDriver;
  readonly #gate: Gate;
  readonly #timer: GateTimer;
  readonly #request: ArrivingRequest;
  readonly #arrivedAt: Millis;
  /** Undefined if the time that the upstream takes does not matter. */
  readonly #times: LatencyEstimate | undefined;
  /** The kind of its event in the queue; it never has more than one. */
  #next: 'arrive' | 'wake' = 'arrive';
  /** The one under way. */
  #attempt: SimulatedAttempt | undefined;
  #lastAttempt: AttemptEnd | undefined;
  #status = 0;

  constructor({ simulator, gate, timer, clientTimeouts, request }: SimulatedExchangeParts) {
    const { facts, group } = request;
    const { plan, rate } = simulator.scenario.policy;
    this.#simulator = simulator;
    this.#gate = gate;
    this.#timer = timer;
    this.#request = request;
    this.#arrivedAt = simulator.now();
    const settle: AdmissionCallback = (admission, now) => this.#driver.onAdmission(admission, now);
    const ticket = new SimulatedTicket(simulator, request, settle, {
      arrivedAt: this.#arrivedAt,
      mode: plan.mode,
    });
    ticket.costs = costsOf(simulator.scenario.policy.cost, request.target);
    // How long writes take decides only about retries just before the deadline, which simulated ones seldom reach.
    const learnsFromLatency = rate?.learnsFromLatency === true;
    if (learnsFromLatency && isSafe(facts)) this.#times = simulator.answerTimes.of(String(group), false);
    const timeouts = learnsFromLatency ? clientTimeouts : undefined;
    const timeout = timeouts?.timeoutOf(ticket, this.#arrivedAt);
    this.#driver = new ExchangeDriver({
      generator: simulator.script(facts, plan, simulator.random, this.#arrivedAt, this.#times?.slow, timeout),
      clientWait: timeouts && new ClientWait(timeouts, ticket, this.#times),
      gate,
      ticket,
      effects: this,
      clock: simulator,
      listen: simulator.listen,
    });
  }

  readBody(): void {
    this.#driver.onBodyRead(true);
  }

  /** No two simulated requests share a key. */
  claim(): void {
    this.#driver.onClaimed(undefined);
  }

  send({ timeout }: SendStep): void {
    const account = this.#driver.ticket.account?.name;
    const target = account === undefined ? this.#request.target : { ...this.#request.target, account };
    this.#attempt = new SimulatedAttempt(this.#simulator, target, timeout, this.#onAttemptEnd);
    this.#attempt.start();
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
    const { group, member, clients, target } = this.#request;
    const { cost = 1 } = target;
    if (verdict.kind === 'forward') this.#settle(cost, now);
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
      cost,
      service: this.#lastAttempt?.service ?? 0,
      upstreamWait: this.#lastAttempt?.upstreamWait ?? 0,
    });
  }

  /** The response names what the request has cost. */
  #settle(cost: number, now: Millis): void {
    const { ticket } = this.#driver;
    const isNamed = ticket.costs?.hasOpen === true && this.#status < 400;
    if (isNamed) this.#gate.costs.settle(ticket, new Map([['', cost]]), now);
    this.#driver.onResponseEnd();
  }

  cancelSend(): boolean {
    this.#attempt?.abandon();
    return true;
  }

  // A simulated response has no body, and a sleep that is over has no effect.
  stopClaim(): void {}
  join(): void {}
  leave(): void {}
  lookUpKey(): void {}
  cancelSleep(): void {}
  discardResponse(): void {}

  run(): void {
    switch (this.#next) {
      case 'arrive':
        return this.#arrive();
      case 'wake':
        return this.#driver.onWake();
    }
  }

  #arrive(): void {
    const { patience } = this.#request;
    if (patience < Number.POSITIVE_INFINITY) {
      const leave = { isProxyEvent: true, run: () => this.#driver.onClientGone(true) };
      this.#simulator.schedule(this.#arrivedAt + patience, leave);
    }
    this.#driver.start();
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
    return this.#status === 429 ? this.#lastAttempt?.hints?.retryAfterMs : undefined;
  }

  readonly #onAttemptEnd = (end: AttemptEnd): void => {
    this.#lastAttempt = end;
    this.#status = end.outcome.kind === 'response' ? end.outcome.status : 0;
    this.#times?.onReadEnd(end.outcome);
    this.#driver.onOutcome(end.outcome);
  };
}
