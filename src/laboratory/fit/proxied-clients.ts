import type { Millis, RequestFacts } from '../../core/exchange/attempt-outcome.ts';
import type { Scenario } from '../../simulator/scenario.ts';
import type { Answered, Observer, WorldParts } from '../../simulator/engine/simulator.ts';
import { World } from '../../simulator/engine/simulator.ts';
import type { Conduct } from '../../simulator/upstream/upstream-model.ts';
import type { Candidate, FitRow } from './replay-candidate.ts';
import { FitTally } from './replay-candidate.ts';
import type { Logged } from './logged-request.ts';

/** After the last request: no request is longer under way. */
const LAST: Millis = 600_000;

/** Clients that ask the proxy, with its own exchange and gate. */
export class Proxied implements Candidate, Observer {
  readonly name: string;
  readonly #world: World;
  readonly #tally = new FitTally();
  /** By method: they are many, and alike. */
  readonly #facts = new Map<string, RequestFacts>();

  constructor(name: string, scenario: Scenario, parts: Pick<WorldParts, 'seed' | 'makeStore'>) {
    this.name = name;
    this.#world = new World({ scenario, ...parts, observer: this });
  }

  arrive({ client, method, path }: Logged, at: Millis): void {
    this.#world.advance(at);
    this.#world.arrive({
      facts: this.#factsOf(method),
      asked: { method, path },
      group: 0,
      member: 0,
      client,
      weight: 1,
      population: DEAF,
    });
  }

  finish(): void {
    this.#world.advance(this.#world.now() + LAST);
  }

  row(): FitRow {
    return this.#tally.row(this.name);
  }

  onOffer(): void {}

  onConduct(conduct: Conduct): void {
    this.#tally.sent(conduct);
  }

  onAnswer({ verdict, status, took }: Answered): void {
    const isForwarded = verdict.kind === 'forward';
    if (isForwarded && status > 0 && status < 400) this.#tally.succeeded(took);
    else if (verdict.kind === 'refuse' || status === 429) this.#tally.refused();
    else this.#tally.failed();
  }

  #factsOf(method: string): RequestFacts {
    const known = this.#facts.get(method);
    if (known !== undefined) return known;
    const facts = { method, keyed: false, expectsContinue: false, priorAttempts: 0 };
    // A log may hold anything: what is no method of ours is not kept.
    if (this.#facts.size < 64) this.#facts.set(method, facts);
    return facts;
  }
}

/** The clients of a log came when they came: whatever a refusal says now, they are not told. */
const DEAF = Object.freeze({ heeds: false, hear: () => undefined });
