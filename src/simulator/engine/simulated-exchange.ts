import type { SendStep } from '../../core/exchange/steps.ts';
import type { Effects } from '../../core/exchange/effects.ts';
import { Drive } from '../../core/exchange/exchange-driver.ts';
import type { Gate } from '../../core/admission/gate.ts';
import { formatRetryAfter } from '../../core/hints/read-hints.ts';
import type { Settle } from '../../core/admission/ticket.ts';
import { Ticket } from '../../core/admission/ticket.ts';
import type { Hints, Millis, Outcome, Verdict } from '../../core/exchange/attempt-outcome.ts';
import type { GateWake } from './gate-timer.ts';
import type { Arriving } from './arrival-process.ts';
import { UPSTREAM } from '../scenario.ts';
import type { Conduct } from '../upstream/upstream-model.ts';
import type { Due, World } from './simulator.ts';

interface Parts {
  readonly world: World;
  readonly gate: Gate;
  readonly wake: GateWake;
  readonly arriving: Arriving;
}

/** The simulator's interpreter of one exchange. */
export class SimulatedExchange implements Effects, Due {
  readonly #world: World;
  readonly #drive: Drive;
  readonly #wake: GateWake;
  readonly #arriving: Arriving;
  readonly #arrivedAt: Millis;
  #sentAt: Millis = 0;
  #timeout: Millis = 0;
  #service: Millis = 0;
  /** What its event in the queue is; it never has more than one. */
  #next: 'arrive' | 'upstream' | 'leave' | 'answer' | 'wake' = 'arrive';
  #conduct: Conduct | undefined;
  #status = 0;
  #hints: Hints | undefined;

  constructor({ world, gate, wake, arriving }: Parts) {
    const { client, weight, facts, group } = arriving;
    this.#world = world;
    this.#wake = wake;
    this.#arriving = arriving;
    this.#arrivedAt = world.now();
    const settle: Settle = (admission, now) => this.#drive.settle(admission, now);
    const ticket = new Ticket(UPSTREAM, client, weight, world.limitsOf(client, group), settle);
    this.#drive = new Drive({
      script: world.script(facts, world.scenario.policy.plan, world.random, this.#arrivedAt),
      gate,
      ticket,
      effects: this,
      clock: world,
      listen: world.listen,
    });
  }

  get isOurs(): boolean {
    return this.#next !== 'upstream' && this.#next !== 'leave';
  }

  readBody(): void {
    this.#drive.bodyRead(true);
  }

  /** No simulated request has a key in common with another. */
  claim(): void {
    this.#drive.claimed(undefined);
  }

  send({ timeout }: SendStep): void {
    this.#sentAt = this.#world.now();
    this.#timeout = timeout;
    this.#next = 'upstream';
    this.#world.at(this.#sentAt + this.#world.scenario.network, this);
  }

  sleep(ms: Millis): void {
    this.#next = 'wake';
    this.#world.at(this.#world.now() + ms, this);
  }

  rearm(): void {
    this.#wake.rearm();
  }

  finish(verdict: Verdict): void {
    const now = this.#world.now();
    const { group, member, population } = this.#arriving;
    if (verdict.kind === 'forward') this.#drive.ended();
    else this.#status = 0;
    const told = verdict.kind === 'refuse' ? this.#tell(verdict.retryAfter ?? 0) : this.#passedOn(verdict);
    if (told !== undefined) population.hear(member, now + told);
    const took = now - this.#arrivedAt;
    this.#world.observer.onAnswer({ group, member, verdict, status: this.#status, took, service: this.#service });
  }

  // A simulated client never goes away, and a response here has no body.
  cancelSend(): boolean {
    return true;
  }
  cancelClaim(): boolean {
    return false;
  }
  lookUp(): undefined {}
  cancelSleep(): void {}
  discard(): void {}

  run(): void {
    switch (this.#next) {
      case 'arrive':
        return this.#drive.start();
      case 'upstream':
        return this.#reachUpstream();
      case 'leave':
        this.#world.upstream.leave(this.#world.now(), this.#arriving.asked);
        this.#next = 'answer';
        return this.#world.at(this.#world.now() + this.#world.scenario.network, this);
      case 'answer':
        return this.#answer();
      case 'wake':
        return this.#drive.woke();
    }
  }

  /** In whole seconds, as the proxy writes it. */
  #tell(retryAfter: Millis): Millis {
    return 1000 * Number(formatRetryAfter(retryAfter, this.#world.random));
  }

  /** The Retry-After of a refusal of the upstream's, which reaches the client as it came; where it has none, ours. */
  #passedOn(verdict: Verdict): Millis | undefined {
    if (verdict.kind !== 'forward') return undefined;
    // Chance is asked only where something comes of it: all else of a run is as it was.
    if (verdict.retryAfter !== undefined) {
      return this.#arriving.population.heeds ? this.#tell(verdict.retryAfter) : undefined;
    }
    return this.#status === 429 ? this.#hints?.retryAfter : undefined;
  }

  #reachUpstream(): void {
    const { network } = this.#world.scenario;
    const now = this.#world.now();
    const conduct = this.#world.decide(this.#arriving.asked);
    this.#conduct = conduct;
    const latency = conduct.kind === 'down' ? 0 : conduct.latency;
    this.#service = 2 * network + latency;
    if (conduct.kind === 'serve' || conduct.kind === 'fail') {
      this.#next = 'leave';
      this.#world.at(now + latency, this);
    } else {
      this.#next = 'answer';
      this.#world.at(now + latency + network, this);
    }
  }

  /** An answer that would have come after the attempt's time is told as a time-out, as late as it came: the place was held so long. */
  #answer(): void {
    const took = this.#world.now() - this.#sentAt;
    const outcome: Outcome =
      took > this.#timeout ? { kind: 'error', reason: 'timeout', sent: true, took } : this.#read(took);
    this.#status = outcome.kind === 'response' ? outcome.status : 0;
    this.#drive.settled(outcome);
  }

  #read(took: Millis): Outcome {
    const conduct = this.#conduct;
    if (conduct === undefined) throw new Error('an answer to nothing');
    if (conduct.kind === 'down' && conduct.how !== '503') {
      const sent = conduct.how === 'reset';
      return { kind: 'error', reason: sent ? 'reset' : 'connect', sent, took };
    }
    const hints = this.#world.upstream.hints(conduct, this.#world.now());
    this.#hints = hints;
    const status = statusOf(conduct);
    const isBare = (status === 429 || status === 503) && hints.retryAfter === undefined;
    return { kind: 'response', status, hints, took, ...(isBare ? { impliedWait: 0 } : {}) };
  }
}

function statusOf(conduct: Conduct): number {
  switch (conduct.kind) {
    case 'serve':
      return 200;
    case 'fail':
      return conduct.status;
    case 'throttle':
      return 429;
    case 'down':
      return 503;
  }
}
