/** One request of the oracle, run in virtual time by an interpreter that replaces the proxy's. */
import type { ExchangeEffects } from '../../../src/core/exchange/effects.ts';
import { effectiveConcurrent } from '../../../src/config/compile/compile-idempotency.ts';
import { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import { runExchange } from '../../../src/core/exchange/polling-exchange.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener } from '../../../src/core/idempotency/key-store.ts';
import type { WriteOutcome } from '../../../src/core/idempotency/write-outcome.ts';
import { classifyWrite, isFinalAnswer } from '../../../src/core/idempotency/write-outcome.ts';
import { isNamedByKey } from '../../../src/core/exchange/request-facts.ts';
import { endpointOfKey } from '../../../src/http/idempotency/endpoint-of-key.ts';
import type { RoutePolicy, SendStep } from '../../../src/core/exchange/steps.ts';
import { failure, requestFacts, SHARED } from '../core/policy-builders.ts';
import type { World } from '../core/world.ts';
import type { ReportedOutcome } from './reported-outcome.ts';
import { outcomeOfVerdict } from './reported-outcome.ts';
import type { ProcessRequest, SimulatedProcess, SimulatedProcesses, SimulatedTopology } from './simulated-processes.ts';
import type { UpstreamLedger } from './upstream-ledger.ts';

/** How long the upstream remembers a key, if keys expire. */
export const TTL: Millis = 2000;

export interface OracleOptions {
  readonly seed: number;
  readonly intents: number;
  readonly concurrent: 'wait' | 'refuse' | 'pass';
  /** Whether keys expire, after a time known to the proxy. */
  readonly hasTtl: boolean;
  readonly topology: SimulatedTopology;
  /** Of the upstream; each knows only its own keys. */
  readonly endpoints: number;
}

/** An operation that one client wants to execute once, under one key. */
export interface SimulatedIntent {
  readonly name: string;
  readonly method: string;
  readonly key: string;
  readonly history: string[];
  /** The one token of all its requests; undefined if each has another. */
  readonly credential: number | undefined;
  /** Requests that have been sent and have not ended. */
  underWay: number;
  /** The outcome of an attempt is unknown, and no response has reached the client since. */
  isOpen: boolean;
  /** When it was last open, or under way. */
  lastOpenAt: Millis;
  /** Requests that have the key, or may have it, or wait for it. */
  claims: number;
  /** When such a request last ended. */
  lastClaimAt: Millis;
  /** Responses to the write that the client has received; one that breaks off later counts until then. */
  answers: number;
  /** Those that will break off. */
  arriving: number;
  /** When such a response last broke off. */
  lastCutAt: Millis;
  /** Its one token has a final response, after which nothing that has ended is open. */
  isSettled: boolean;
}

/** What a request knows itself. */
export interface OwnKnowledge {
  /** The outcome of an attempt of its own is unknown. */
  readonly isOpen: boolean;
  /** When it got the key, and whether the write was unresolved; undefined if it did not get the key. */
  readonly atClaim: { readonly at: Millis; readonly isUnresolved: boolean } | undefined;
}

export interface OracleScene {
  readonly world: World;
  readonly processes: SimulatedProcesses;
  readonly ledger: UpstreamLedger;
  readonly random: Random;
  readonly plan: RoutePolicy;
  readonly options: OracleOptions;
  readonly judge: (intent: SimulatedIntent, reported: ReportedOutcome, own: OwnKnowledge) => void;
}

const ENDPOINTS = [{ label: 'a' }, { label: 'b' }, { label: 'c' }] as const;
/** The connection is ready so late that the key has to be looked up again. */
const KEY_OUTDATED: AttemptOutcome = { kind: 'error', reason: 'timeout', sent: false, took: 0, isKeyOutdated: true };
type Endpoint = (typeof ENDPOINTS)[number];

/** Implements the effects of one exchange, as the proxy does over sockets. */
export class SimulatedRequest implements ExchangeEffects, ProcessRequest {
  readonly #scene: OracleScene;
  readonly #intent: SimulatedIntent;
  readonly #driver: ExchangeDriver;
  readonly #process: SimulatedProcess;
  readonly #claim: KeyClaim;
  readonly #ticket: Ticket;
  readonly #uploads: boolean;
  /** Where the last attempt went; undefined before the first. */
  #endpoint: Endpoint | undefined;
  /** Another endpoint may get the write, which its method makes safe to repeat. */
  readonly #mayChangeEndpoint: boolean;
  /** Counts what is awaited; a result of an earlier wait is ignored. */
  #turn = 0;
  #isUnderWay = false;
  #isClaiming = false;
  #isOwnOpen = false;
  #hasLeft = false;
  #atClaim: OwnKnowledge['atClaim'];
  /** The response breaks off soon. */
  #isBreaking = false;

  constructor(scene: OracleScene, intent: SimulatedIntent) {
    const { world, processes, random, plan, options } = scene;
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
    this.#mayChangeEndpoint = options.endpoints > 1 && !isNamedByKey(facts);
    this.#process = processes.choose();
    this.#process.requests.add(this);
    this.#claim = this.#process.store.makeClaim({
      identity: {
        upstream: 'up',
        name: `${method} ${intent.key}`,
        credential: intent.credential ?? 1 + 1e9 * random(),
        owner: 1,
        credentialHeader: 'authorization',
        body: 1,
      },
      place: { fairnessKey: intent.name, client: intent.name },
      concurrent: effectiveConcurrent({ concurrent: options.concurrent, sharesKeys: false }, options.endpoints),
      ttl: options.hasTtl ? TTL : undefined,
      ...{ endpoint: options.endpoints === 1 ? ENDPOINTS[0].label : undefined, onStoreLost: 'refuse' },
    });
    const client = `client ${Math.floor(40 * random())}`;
    this.#ticket = new Ticket('up', client, 1, [SHARED], (admission, now) => this.#driver.onAdmission(admission, now));
    this.#driver = new ExchangeDriver({
      generator: runExchange(facts, plan, world.random, world.now),
      gate: world.gate,
      ticket: this.#ticket,
      effects: this,
      clock: { now: () => world.now },
      listen: () => undefined,
    });
  }

  start(): void {
    const { world, random } = this.#scene;
    this.#intent.history.push(`${Math.round(world.now)}: asked`);
    if (random() < 0.08) world.at(world.now + 400 * random(), () => this.#leave());
    if (random() < 0.03) world.at(world.now + 400 * random(), () => this.#driver.expireDrain());
    this.#driver.start();
  }

  readBody(): void {
    if (this.#uploads) this.#later(2.5 * TTL * this.#scene.random() ** 3, () => this.#driver.onBodyRead(true));
    else this.#driver.onBodyRead(true);
  }

  claim(deadline: Millis): void {
    const onClaimed = (record: KeyRecord | undefined, hasWaited: boolean): void => {
      // Workers and a database count the write as sent from now on.
      if (this.#scene.options.topology !== 'one process') this.#setUnderWay(true);
      this.#atClaim = { at: this.#scene.world.now, isUnresolved: record?.isAnswered === false };
      this.#driver.onClaimed(record, hasWaited);
    };
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayHaveTakenEffect) =>
      this.#driver.onClaimRefused(why, mayHaveTakenEffect);
    this.#setClaiming(true);
    this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
  }

  join(): void {}
  leave(): void {}

  stopClaim(): void {
    this.#claim.stopWaiting();
  }

  lookUpKey(): void {
    this.#claim.lookUp((record) => this.#driver.onKeyKnown(record));
  }

  send({ timeout, startBy, isPinned }: SendStep): void {
    const { world, random, ledger, plan } = this.#scene;
    const endpoint = this.#chooseEndpoint(isPinned);
    if (endpoint === undefined) return this.#recordOutcome(failure('connect', false));
    this.#endpoint = endpoint;
    this.#claim.onSend(endpoint.label);
    this.#setUnderWay(true);
    const forConnection = random() < 0.1 ? 1.2 * timeout * random() : 0;
    if (forConnection >= timeout) return this.#later(timeout, () => this.#recordOutcome(failure('timeout', false)));
    this.#later(forConnection, () => {
      if (world.now > startBy) return this.#recordOutcome(failure('timeout', false));
      if (!this.#claim.isCurrent) return this.#recordOutcome(KEY_OUTDATED);
      const remaining = timeout - forConnection;
      if (remaining + 1e-6 < (plan.retry.minAttemptTime ?? 0)) throw new Error(`sent ${remaining} ms before its end`);
      const { name, key, method } = this.#intent;
      const isRepeatable = method === 'PUT' || method === 'DELETE';
      const { outcome, after } = ledger.attempt(name, `${endpoint.label} ${key}`, isRepeatable, remaining, world.now);
      this.#later(after, () => this.#recordOutcome(outcome));
    });
  }

  /** The next one in turn, unless only one may know the key. @returns undefined if nobody knows which */
  #chooseEndpoint(isPinned: boolean): Endpoint | undefined {
    const all = ENDPOINTS.slice(0, this.#scene.options.endpoints);
    if (isPinned) {
      const label = endpointOfKey(this.#claim, this.#endpoint, { endpoints: { all } });
      if (label !== undefined) return all.find((each) => each.label === label);
    }
    if (this.#endpoint === undefined) return all[Math.floor(all.length * this.#scene.random())];
    return all[(all.indexOf(this.#endpoint) + 1) % all.length];
  }

  cancelSend(): boolean {
    this.#turn += 1;
    this.#isOwnOpen = true;
    return true;
  }

  discardResponse(): void {}

  sleep(ms: Millis): void {
    this.#later(ms, () => this.#driver.onWake());
  }

  cancelSleep(): void {
    this.#turn += 1;
  }

  rearmGateTimer(): void {
    this.#scene.world.rearm();
  }

  /** In the order of the proxy: answers the client, then releases the key. */
  finish(verdict: ExchangeVerdict): void {
    const { outcome } = this.#driver;
    const isDelivered = !this.#hasLeft;
    this.#setUnderWay(false);
    this.#setClaiming(false);
    if (isDelivered && verdict.kind === 'forward' && this.#scene.random() < 0.03) {
      this.#breakOffAnswer(verdict, outcome);
    } else if (isDelivered) this.#judgeAnswer(verdict, outcome);
    else this.#judgeNoAnswer(verdict, outcome);
    this.#intent.lastClaimAt = this.#scene.world.now;
    this.#claim.release(this.#claimEnd(verdict, outcome, isDelivered));
    if (verdict.kind === 'forward') this.#driver.onResponseEnd();
    if (!this.#isBreaking) this.#end();
  }

  /** Its process was killed: the client gets no response, and whoever keeps the key cannot know what was sent. */
  onProcessGone(): void {
    this.#intent.isOpen ||= this.#claim.hasWrite;
    this.#leave();
  }

  #end(): void {
    this.#claim.close();
    this.#process.requests.delete(this);
  }

  /** Delivers the head of the response; the body breaks off shortly after. */
  #breakOffAnswer(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): void {
    const { world, random } = this.#scene;
    const answers = this.#isAnswered(verdict, outcome) ? 1 : 0;
    this.#isBreaking = true;
    this.#intent.answers += answers;
    this.#intent.arriving += answers;
    this.#intent.isOpen ||= this.#isOwnOpen;
    world.at(world.now + 30 * random(), () => {
      // A cut by the upstream is noticed twice: there, and when the client's connection closes.
      for (let i = this.#scene.random() < 0.5 ? 1 : 2; i > 0; i -= 1) this.#claim.onUndelivered();
      this.#intent.answers -= answers;
      this.#intent.arriving -= answers;
      if (answers > 0) this.#intent.lastCutAt = world.now;
      this.#judgeNoAnswer(verdict, outcome);
      this.#end();
    });
  }

  #judgeNoAnswer(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): void {
    this.#intent.isOpen ||= this.#isOwnOpen || this.#isAnswered(verdict, outcome);
    this.#scene.judge(this.#intent, 'nothing', { isOpen: true, atClaim: this.#atClaim });
  }

  #judgeAnswer(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): void {
    const own = { isOpen: this.#isOwnOpen, atClaim: this.#atClaim };
    this.#scene.judge(this.#intent, outcomeOfVerdict(verdict, outcome), own);
    if (outcome?.kind === 'response' && outcome.status < 300 && this.#isAnswered(verdict, outcome)) {
      this.#intent.isSettled ||= this.#intent.credential !== undefined;
    }
    if (this.#isAnswered(verdict, outcome)) {
      this.#intent.isOpen = false;
      this.#intent.lastOpenAt = this.#scene.world.now;
      this.#intent.answers += 1;
    } else this.#intent.isOpen ||= this.#isOwnOpen;
  }

  #leave(): void {
    if (this.#driver.isDone) return;
    this.#hasLeft = true;
    this.#driver.onClientGone();
  }

  #recordOutcome(outcome: AttemptOutcome): void {
    const what = outcome.kind === 'response' ? outcome.status : `${outcome.reason}${outcome.sent ? '' : ', unsent'}`;
    this.#intent.history.push(`${Math.round(this.#scene.world.now)}: ${what}`);
    if (this.#meaningOf(outcome) === 'may_have_taken_effect') this.#isOwnOpen = true;
    this.#claim.recordOutcome(this.#meaningOf(outcome));
    this.#driver.onOutcome(outcome);
  }

  #meaningOf(outcome: AttemptOutcome): WriteOutcome {
    return classifyWrite({ method: this.#intent.method, keyed: true }, outcome);
  }

  /** True if the forwarded response answers the write itself. */
  #isAnswered(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): boolean {
    return verdict.kind === 'forward' && outcome !== undefined && this.#meaningOf(outcome) === 'answered';
  }

  #claimEnd(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined, isDelivered: boolean): KeyClaimEnd {
    if (verdict.kind === 'gone' && verdict.unknown) return { kind: 'unknown' };
    if (outcome === undefined || !this.#isAnswered(verdict, outcome)) return { kind: 'other' };
    return { kind: 'answered', isFinal: isFinalAnswer(outcome, this.#mayChangeEndpoint), isDelivered };
  }

  #setUnderWay(isUnderWay: boolean): void {
    if (this.#isUnderWay !== isUnderWay) this.#intent.underWay += isUnderWay ? 1 : -1;
    if (!isUnderWay) this.#intent.lastOpenAt = this.#scene.world.now;
    this.#isUnderWay = isUnderWay;
  }

  #setClaiming(isClaiming: boolean): void {
    if (this.#isClaiming === isClaiming) return;
    this.#isClaiming = isClaiming;
    this.#intent.claims += isClaiming ? 1 : -1;
  }

  #later(delay: Millis, run: () => void): void {
    const { world } = this.#scene;
    this.#turn += 1;
    const turn = this.#turn;
    world.at(world.now + delay, () => turn === this.#turn && run());
  }
}
