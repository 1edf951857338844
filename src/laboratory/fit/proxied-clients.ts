import type { Millis } from '../../core/scalars.ts';
import type { RequestFacts } from '../../core/exchange/request-facts.ts';
import type { Scenario } from '../../simulator/scenario.ts';
import type { SimulatedRequestResult, SimulationObserver, SimulatorParts } from '../../simulator/engine/simulator.ts';
import { Simulator } from '../../simulator/engine/simulator.ts';
import type { UpstreamDecision } from '../../simulator/upstream/upstream-model.ts';
import type { ReplayCandidate, FitRow } from './replay-candidate.ts';
import { FitCounters } from './replay-candidate.ts';
import type { LoggedRequest } from './logged-request.ts';

/** Time simulated after the last request, in ms. */
const DRAIN_TIME: Millis = 600_000;

/** Clients behind the proxy, with its own exchange and gate. */
export class ProxiedClients implements ReplayCandidate, SimulationObserver {
  readonly name: string;
  readonly #simulator: Simulator;
  readonly #counters = new FitCounters();
  /** Facts by method: requests are many and alike. */
  readonly #facts = new Map<string, RequestFacts>();

  constructor(name: string, scenario: Scenario, parts: Pick<SimulatorParts, 'seed' | 'makeStore'>) {
    this.name = name;
    this.#simulator = new Simulator({ scenario, ...parts, observer: this });
  }

  arrive({ client, method, path }: LoggedRequest, at: Millis): void {
    this.#simulator.advance(at);
    this.#simulator.arrive({
      facts: this.#factsOf(method),
      target: { method, path },
      group: 0,
      member: 0,
      client,
      weight: 1,
      clients: IGNORING_RETRY_AFTER,
      patience: Number.POSITIVE_INFINITY,
    });
  }

  finish(): void {
    this.#simulator.advance(this.#simulator.now() + DRAIN_TIME);
  }

  row(): FitRow {
    return this.#counters.row(this.name);
  }

  onOffer(): void {}

  onUpstreamDecision(decision: UpstreamDecision): void {
    this.#counters.recordSend(decision);
  }

  onRequestEnd({ verdict, status, took }: SimulatedRequestResult): void {
    const isForwarded = verdict.kind === 'forward';
    if (isForwarded && status > 0 && status < 400) this.#counters.recordSuccess(took);
    else if (verdict.kind === 'refuse' || status === 429) this.#counters.recordRefusal();
    else this.#counters.recordFailure();
  }

  #factsOf(method: string): RequestFacts {
    const known = this.#facts.get(method);
    if (known !== undefined) return known;
    const facts = { method, keyed: false, expectsContinue: false, priorAttempts: 0 };
    // A log may hold anything: an unknown method is not cached.
    if (this.#facts.size < 64) this.#facts.set(method, facts);
    return facts;
  }
}

/** Arrivals follow the log: simulated Retry-Afters have no effect on them. */
const IGNORING_RETRY_AFTER = Object.freeze({ honoursRetryAfter: false, onRetryAfter: () => undefined });
