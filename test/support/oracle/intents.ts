/** Random clients with random habits, in virtual time, against a ledger; what each is told is judged at once. */
import { live } from '../../../src/core/exchange/polling-exchange.ts';
import { Drive } from '../../../src/core/exchange/exchange-driver.ts';
import type { Effects } from '../../../src/core/exchange/effects.ts';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { KeyRecord, Millis, Outcome, Random, Verdict } from '../../../src/core/exchange/attempt-outcome.ts';
import { classifyWrite } from '../../../src/core/idempotency/write-outcome.ts';
import { KeyClaim } from '../../../src/http/idempotency/key-claim.ts';
import type { Plan, SendStep } from '../../../src/core/exchange/steps.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { failure, fixedDelay, planOf, requestFacts, RETRY_ALL, retryPolicy, SHARED, World } from '../policy.ts';
import type { Told } from './judge.ts';
import { contradiction, toldBy } from './judge.ts';
import { Ledger } from './ledger.ts';

const TTL: Millis = 2000;
const METHODS = ['POST', 'POST', 'POST', 'PATCH', 'PUT', 'DELETE'];

export interface OracleOptions {
  readonly seed: number;
  readonly intents: number;
  readonly concurrent: 'wait' | 'refuse' | 'pass';
  /** Whether keys live for a time, and the proxy knows for how long. */
  readonly hasTtl: boolean;
}

export interface OracleRun {
  /** What was wrong, each with all that happened to its intent. */
  readonly contradictions: readonly string[];
  readonly told: Readonly<Partial<Record<Told, number>>>;
}

/** Something that one client wants done once, under one key. */
interface Intent {
  readonly name: string;
  readonly method: string;
  readonly key: string;
  readonly story: string[];
  /** Its requests that have been sent and are not over. */
  underWay: number;
  /** An attempt has left it open, and no answer to it has reached its client since. */
  isOpen: boolean;
  /** Its client has had an answer to it. */
  isKnown: boolean;
}

interface Scene {
  readonly world: World;
  readonly keys: KeyRegistry;
  readonly ledger: Ledger;
  readonly random: Random;
  readonly plan: Plan;
  readonly options: OracleOptions;
  readonly tell: (intent: Intent, told: Told, isOwnOpen: boolean) => void;
}

export function runIntents(options: OracleOptions): OracleRun {
  const random = seededRandom(options.seed);
  const upstream = { queue: { maxWait: 200, maxDepth: 50 }, budget: { ratio: 1, burst: 1000 } };
  const world = new World({ seed: options.seed + 1, upstream });
  const ledger = new Ledger(options.hasTtl ? TTL : Number.POSITIVE_INFINITY, random);
  const retry = retryPolicy({
    retryOn: { ...RETRY_ALL, lock: random() < 0.5 },
    attempts: 3,
    backOff: fixedDelay(40),
    minAttemptTime: 50,
  });
  const plan = planOf({ timeout: 1500, perTryTimeout: 300, claims: true, retry });
  const contradictions: string[] = [];
  const counts: Partial<Record<Told, number>> = {};

  const tell = (intent: Intent, told: Told, isOwnOpen: boolean): void => {
    counts[told] = (counts[told] ?? 0) + 1;
    intent.story.push(`${Math.round(world.now)}: ${told}`);
    const isOpen = isOwnOpen || intent.isOpen || intent.underWay > 0;
    const wrong = contradiction(told, { times: ledger.times(intent.name), isOpen, isKnown: intent.isKnown });
    if (wrong === undefined) return;
    contradictions.push(`${intent.name}, ${intent.method}: ${wrong}: ${intent.story.join('; ')}`);
  };
  const scene: Scene = { world, keys: new KeyRegistry(), ledger, random, plan, options, tell };

  for (let number = 0; number < options.intents; number += 1) plot(scene, number);
  world.runUntil(200_000);
  return { contradictions, told: counts };
}

/** When an intent is asked for: at the same time, soon, or when the upstream has forgotten its key. */
function plot(scene: Scene, number: number): void {
  const { world, random } = scene;
  const intent: Intent = {
    name: `intent ${number}`,
    method: METHODS[Math.floor(METHODS.length * random())] ?? 'POST',
    key: `key ${number}`,
    story: [],
    ...{ underWay: 0, isOpen: false, isKnown: false },
  };
  let at = 100_000 * random();
  for (let tries = 1 + Math.floor(5 * random()); tries > 0; tries -= 1) {
    world.at(at, () => new Asked(scene, intent).start());
    at += random() < 0.2 ? 20 * random() : random() < 0.7 ? 600 * random() : 2 * TTL * random();
  }
}

/** One request, as the proxy interprets it. */
class Asked implements Effects {
  readonly #scene: Scene;
  readonly #intent: Intent;
  readonly #drive: Drive;
  readonly #claim: KeyClaim;
  readonly #ticket: Ticket;
  readonly #uploads: boolean;
  /** What is awaited; anything that comes of an earlier one is not wanted any more. */
  #turn = 0;
  #isUnderWay = false;
  #isOwnOpen = false;
  #hasLeft = false;

  constructor(scene: Scene, intent: Intent) {
    const { world, keys, random, plan, options } = scene;
    this.#scene = scene;
    this.#intent = intent;
    this.#uploads = random() < 0.1;
    const { method } = intent;
    const facts = requestFacts({
      method,
      keyed: true,
      expectsContinue: this.#uploads,
      ...(options.hasTtl && { keyTtl: TTL }),
    });
    this.#claim = new KeyClaim({
      keys,
      clock: { now: () => world.now },
      schedule: (delay, run) => {
        let isWanted = true;
        world.at(world.now + delay, () => isWanted && run());
        return () => {
          isWanted = false;
        };
      },
      // Its token is another each time.
      identity: {
        upstream: 'up',
        name: `${method} ${intent.key}`,
        credential: 1 + 1e9 * random(),
        readFrom: 'authorization',
        body: 1,
      },
      place: { holder: intent.name, client: intent.name },
      concurrent: options.concurrent,
      ttl: options.hasTtl ? TTL : undefined,
      policy: plan.retry,
    });
    const client = `client ${Math.floor(40 * random())}`;
    this.#ticket = new Ticket('up', client, 1, [SHARED], (admission, now) => this.#drive.settle(admission, now));
    this.#drive = new Drive({
      script: live(facts, plan, world.random, world.now),
      gate: world.gate,
      ticket: this.#ticket,
      effects: this,
      clock: { now: () => world.now },
      listen: () => undefined,
    });
  }

  start(): void {
    const { world, random } = this.#scene;
    this.#intent.story.push(`${Math.round(world.now)}: asked`);
    if (random() < 0.08) world.at(world.now + 400 * random(), () => this.#leave());
    if (random() < 0.03) world.at(world.now + 400 * random(), () => this.#drive.expire());
    this.#drive.start();
  }

  readBody(): void {
    if (this.#uploads) this.#later(2.5 * TTL * this.#scene.random() ** 3, () => this.#drive.bodyRead(true));
    else this.#drive.bodyRead(true);
  }

  claim(deadline: Millis): void {
    this.#claim.begin(this.#drive, deadline);
  }

  cancelClaim(): boolean {
    return this.#claim.cancel();
  }

  lookUp(): KeyRecord | undefined {
    return this.#claim.lookUp();
  }

  send({ timeout, startBy }: SendStep): void {
    const { world, random, ledger } = this.#scene;
    this.#claim.sending('up');
    this.#setUnderWay(true);
    const forConnection = random() < 0.1 ? 1.2 * timeout * random() : 0;
    if (forConnection >= timeout) return this.#later(timeout, () => this.#settle(failure('timeout', false)));
    this.#later(forConnection, () => {
      if (world.now > startBy) return this.#settle(failure('timeout', false));
      const { name, key, method } = this.#intent;
      const isRepeatable = method === 'PUT' || method === 'DELETE';
      const { outcome, after } = ledger.attempt(name, key, isRepeatable, timeout - forConnection, world.now);
      this.#later(after, () => this.#settle(outcome));
    });
  }

  cancelSend(): boolean {
    this.#turn += 1;
    this.#isOwnOpen = true;
    return true;
  }

  discard(): void {}

  sleep(ms: Millis): void {
    this.#later(ms, () => this.#drive.woke());
  }

  cancelSleep(): void {
    this.#turn += 1;
  }

  rearm(): void {
    this.#scene.world.rearm();
  }

  /** In the order of the proxy: its client is answered, then its key is free. */
  finish(verdict: Verdict): void {
    const { outcome } = this.#drive;
    const isHeard = !this.#hasLeft;
    this.#setUnderWay(false);
    if (isHeard && verdict.kind === 'forward' && this.#scene.random() < 0.03) this.#begin(verdict, outcome);
    else if (isHeard) this.#tell(verdict, outcome);
    else this.#tellNothing(verdict, outcome);
    this.#claim.end(verdict, outcome, isHeard, undefined);
    if (verdict.kind === 'forward') this.#drive.ended();
  }

  /** Its client gets the head of its answer, and soon sees it broken off. */
  #begin(verdict: Verdict, outcome: Outcome | undefined): void {
    const { world, random } = this.#scene;
    const { isKnown } = this.#intent;
    this.#intent.isKnown ||= isAnswered(verdict, outcome);
    this.#intent.isOpen ||= this.#isOwnOpen;
    world.at(world.now + 30 * random(), () => {
      this.#claim.unheard();
      this.#intent.isKnown = isKnown;
      this.#tellNothing(verdict, outcome);
    });
  }

  #tellNothing(verdict: Verdict, outcome: Outcome | undefined): void {
    this.#intent.isOpen ||= this.#isOwnOpen || isAnswered(verdict, outcome);
    this.#scene.tell(this.#intent, 'nothing', true);
  }

  #tell(verdict: Verdict, outcome: Outcome | undefined): void {
    this.#scene.tell(this.#intent, toldBy(verdict, outcome), this.#isOwnOpen);
    if (isAnswered(verdict, outcome)) Object.assign(this.#intent, { isOpen: false, isKnown: true });
    else this.#intent.isOpen ||= this.#isOwnOpen;
  }

  #leave(): void {
    if (this.#drive.isDone) return;
    this.#hasLeft = true;
    this.#drive.gone();
  }

  #settle(outcome: Outcome): void {
    const what = outcome.kind === 'response' ? outcome.status : `${outcome.reason}${outcome.sent ? '' : ', unsent'}`;
    this.#intent.story.push(`${Math.round(this.#scene.world.now)}: ${what}`);
    if (classifyWrite(outcome) === 'may_have_happened') this.#isOwnOpen = true;
    this.#claim.note(outcome);
    this.#drive.settled(outcome);
  }

  #setUnderWay(isUnderWay: boolean): void {
    if (this.#isUnderWay !== isUnderWay) this.#intent.underWay += isUnderWay ? 1 : -1;
    this.#isUnderWay = isUnderWay;
  }

  #later(delay: Millis, run: () => void): void {
    const { world } = this.#scene;
    this.#turn += 1;
    const turn = this.#turn;
    world.at(world.now + delay, () => turn === this.#turn && run());
  }
}

/** It is an answer to the write itself. */
function isAnswered(verdict: Verdict, outcome: Outcome | undefined): boolean {
  return verdict.kind === 'forward' && outcome !== undefined && classifyWrite(outcome) === 'answered';
}
