/** The policy as it is shipped, run in virtual time against an upstream that is a function. */
import type { Effects } from '../../src/core/exchange/effects.ts';
import { Drive } from '../../src/core/exchange/exchange-driver.ts';
import type { Plan } from '../../src/core/exchange/steps.ts';
import { live } from '../../src/core/exchange/polling-exchange.ts';
import type { PollWait } from '../../src/core/exchange/poll-session.ts';
import { Activity } from '../../src/core/admission/active-clients.ts';
import { Nests } from '../../src/core/admission/address-groups.ts';
import { UntoldQuotas } from '../../src/core/quota/unmetered-successes.ts';
import { RetryBudget } from '../../src/core/retry/retry-token-bucket.ts';
import type { ClientStore } from '../../src/core/admission/client-allowance.ts';
import { Backlog } from '../../src/core/admission/queue-occupancy.ts';
import type { Listen, TideEvent } from '../../src/core/events/proxy-events.ts';
import type { Store, Upstream } from '../../src/core/admission/gate-store.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import { Heap } from '../../src/core/collections/binary-heap.ts';
import { formatRetryAfter } from '../../src/core/hints/read-hints.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { Limit } from '../../src/core/limits/limit.ts';
import type { Meter } from '../../src/core/limits/meter.ts';
import type { PollPolicy } from '../../src/core/polling/choose-poll.ts';
import { numberOf } from '../../src/core/quota/requester.ts';
import type { Admission } from '../../src/core/admission/ticket.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type {
  BackOff,
  ErrorReason,
  Hints,
  Millis,
  Mode,
  Outcome,
  PerSecond,
  Random,
  RequestFacts,
  RetryPolicy,
  Verdict,
} from '../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../src/core/exchange/attempt-outcome.ts';
import type { LimitModel } from '../../src/simulator/limit-models/limit-model.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { ClientTable } from '../../src/store/clients/client-table.ts';
import type { UpstreamSettings } from '../../src/store/memory-store.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';

export function response(status: number, hints: Partial<Hints> = {}, took: Millis = 0): Outcome {
  return { kind: 'response', status, hints: { ...NO_HINTS, ...hints }, took };
}

export function failure(reason: ErrorReason, sent: boolean, took: Millis = 0): Outcome {
  return { kind: 'error', reason, sent, took };
}

export function fixedDelay(delay: Millis): BackOff {
  return { name: 'fixed', next: () => ({ delay, memory: 0 }) };
}

/** Retries all that may be retried, 4 sends in all, 100 ms between them. */
export function retryPolicy(policy: Partial<RetryPolicy> = {}): RetryPolicy {
  return {
    retryOn: RETRY_ALL,
    attempts: 4,
    backOff: fixedDelay(100),
    backOffFor: {},
    maxRetryAfter: 60_000,
    unkeyedWrites: 'never',
    onClientGone: 'cancel',
    ...policy,
  };
}

export const RETRY_ALL: RetryPolicy['retryOn'] = {
  statuses: new Set([429, ...Array.from({ length: 100 }, (_, i) => 500 + i)]),
  connectFailure: true,
  reset: true,
  timeout: true,
  lock: true,
};

/** One send and no more. */
export const SEND_ONCE: RetryPolicy = retryPolicy({ attempts: 1 });

/** Polls of a 202, a second apart, for a minute at most. */
export function pollPolicy(policy: Partial<PollPolicy> = {}): PollPolicy {
  return {
    notReady: new Set([202]),
    backOff: fixedDelay(1000),
    maxWait: 60_000,
    maxPolls: 50,
    maxWaiting: 1000,
    ...policy,
  };
}

export function requestFacts(facts: Partial<RequestFacts> = {}): RequestFacts {
  return { method: 'GET', keyed: false, expectsContinue: false, priorAttempts: 0, ...facts };
}

export function planOf(plan: Partial<Plan> = {}): Plan {
  return { retry: retryPolicy(), timeout: 10_000, perTryTimeout: 5000, ...plan };
}

export const SHARED: LimitRef = { upstream: 'up', nested: '', scope: 'upstream', key: '' };

export function upstreamSettings(settings: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return {
    name: 'up',
    scope: 'upstream',
    rate: { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
    queue: { maxWait: 1000, maxDepth: 10_000 },
    budget: { ratio: 0.2, burst: 10 },
    ...settings,
  };
}

/** Exactly so many a second, known beforehand. */
export function limitedTo(rate: PerSecond): Partial<UpstreamSettings> {
  return { rate: { initialRate: rate, maxRate: rate, minRate: Math.min(0.1, rate), cooldown: 1000 } };
}

/** A store of the limits that a test names, each with the meter of its choice; all of one upstream. */
export class ChosenStore implements Store {
  readonly clients: ClientStore;
  readonly #upstream: Upstream;
  readonly #limits = new Map<string, Limit>();

  constructor(meters: Readonly<Record<string, Meter>>, listen: Listen, settings = upstreamSettings()) {
    const { name, queue, budget } = settings;
    this.clients = new ClientTable(1000, listen);
    const parts = {
      budget: new RetryBudget(budget),
      activity: new Activity(),
      nests: new Nests(),
      untold: new UntoldQuotas(),
    };
    this.#upstream = { name, queue, backlog: new Backlog(), overflows: 0, ...parts };
    for (const [key, meter] of Object.entries(meters)) {
      this.#limits.set(
        key,
        new Limit({ upstream: name, nested: key, scope: key === '' ? 'upstream' : 'credential', key }, meter),
      );
    }
  }

  upstream(): Upstream {
    return this.#upstream;
  }

  upstreams(): Iterable<Upstream> {
    return [this.#upstream];
  }

  find({ key }: LimitRef): Limit | undefined {
    return this.#limits.get(key);
  }

  make({ key }: LimitRef): Limit {
    throw new Error(`no limit '${key}' was chosen`);
  }

  holdAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.hold(key, until, now);
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}

/** A ticket of a request that shows this credential. */
export class ShownTicket extends Ticket {
  readonly #shown: string;

  constructor(shown: string, ...parts: ConstructorParameters<typeof Ticket>) {
    super(...parts);
    this.#shown = shown;
  }

  protected override credential(): number {
    return numberOf(this.#shown);
  }
}

/** What the upstream does with one send: an outcome after a while, or nothing, ever. */
export type Reply = { readonly outcome: Outcome; readonly after: Millis } | 'silence';
export type Respond = (send: Send) => Reply;

export interface Send {
  readonly client: string;
  readonly at: Millis;
  readonly attempt: number;
  readonly timeout: Millis;
}

export interface Call {
  readonly client?: string;
  readonly weight?: number;
  readonly facts?: Partial<RequestFacts>;
  readonly plan?: Partial<Plan>;
  readonly refs?: readonly LimitRef[];
  /** How long the client uploads. */
  readonly upload?: Millis;
  readonly replayable?: boolean;
  /** How long a forwarded response goes on after its head. */
  readonly download?: Millis;
  readonly pollWait?: PollWait;
  readonly onVerdict?: (story: Story) => void;
}

export interface Arrival {
  readonly client?: string;
  readonly weight?: number;
  readonly refs?: readonly LimitRef[];
  readonly deadline?: Millis;
  readonly bodyInHand?: boolean;
  readonly nest?: string;
  /** What it authenticates with; nothing when absent. */
  readonly credential?: string;
}

/** A ticket, and what it was told last; undefined while it waits. */
export interface Standing {
  readonly ticket: Ticket;
  told: Admission | undefined;
  at: Millis;
}

/** What came of one call. */
export interface Story {
  readonly call: Call;
  readonly drive: Drive;
  readonly startedAt: Millis;
  readonly sends: Send[];
  /** Everything that was asked of the interpreter, in order. */
  readonly asked: string[];
  verdict: Verdict | undefined;
  endedAt: Millis;
  /** Of the last response. */
  status: number | undefined;
}

export interface WorldOptions {
  /** Instead of the memory store. */
  readonly meters?: Readonly<Record<string, Meter>>;
  readonly upstream?: Partial<UpstreamSettings>;
  readonly respond?: Respond;
  readonly seed?: number;
  readonly random?: Random;
  readonly maxTracked?: number;
  readonly mode?: Mode;
  /** Told of every event, after it was written down. */
  readonly onEvent?: Listen;
  /** Called after everything that happens. */
  readonly onStep?: (world: World) => void;
}

interface Due {
  readonly at: Millis;
  readonly number: number;
  readonly run: () => void;
  heapIndex: number;
}

/** An interpreter like the proxy's, but for sockets and timers: it wakes the gate when `nextWake` says so and not else. */
export class World {
  now: Millis = 0;
  readonly events: TideEvent[] = [];
  readonly store: Store;
  readonly gate: Gate;
  readonly random: Random;
  respond: Respond;
  readonly #mode: Mode;
  readonly #onStep: ((world: World) => void) | undefined;
  readonly #agenda = new Heap<Due>((a, b) => (a.at === b.at ? a.number < b.number : a.at < b.at));
  #number = 0;
  #wake: Due | undefined;

  constructor({
    meters,
    upstream,
    respond,
    seed = 1,
    random,
    maxTracked = 1000,
    mode = 'enforce',
    onEvent,
    onStep,
  }: WorldOptions = {}) {
    const upstreams = [upstreamSettings(upstream)];
    const listen = (event: TideEvent): void => {
      this.events.push(event);
      onEvent?.(event);
    };
    this.#mode = mode;
    this.#onStep = onStep;
    this.random = random ?? seededRandom(seed);
    this.respond = respond ?? (() => ({ outcome: response(200), after: 10 }));
    this.store =
      meters === undefined
        ? new MemoryStore({ upstreams, maxTracked, random: this.random, listen })
        : new ChosenStore(meters, listen, upstreamSettings(upstream));
    this.gate = new Gate(this.store, listen, mode);
  }

  at(time: Millis, run: () => void): Due {
    const due = { at: Math.max(time, this.now), number: (this.#number += 1), run, heapIndex: -1 };
    this.#agenda.push(due);
    return due;
  }

  /** @throws when time stands still: a wake that is due again and again */
  runUntil(end: Millis): void {
    let standing = 0;
    for (let due = this.#agenda.peek(); due !== undefined && due.at <= end; due = this.#agenda.peek()) {
      this.#agenda.remove(due);
      standing = due.at === this.now ? standing + 1 : 0;
      if (standing > 100_000) throw new Error(`time stands still at ${this.now} ms`);
      this.now = due.at;
      due.run();
      this.#onStep?.(this);
    }
    this.now = end;
  }

  /** Starts an exchange now. */
  call(call: Call = {}): Story {
    const sends: Send[] = [];
    const asked: string[] = [];
    let timer: Due | undefined;
    let reply: Due | undefined;
    const forget = (due: Due | undefined): void => {
      if (due !== undefined) this.#agenda.remove(due);
    };
    const effects: Effects = {
      readBody: () => {
        asked.push('body');
        if (call.upload === undefined) drive.bodyRead(call.replayable ?? true);
        else this.at(this.now + call.upload, () => drive.bodyRead(call.replayable ?? true));
      },
      claim: () => {
        asked.push('claim');
        drive.claimed(undefined);
      },
      cancelClaim: () => {
        asked.push('cancelClaim');
        return false;
      },
      lookUp: () => undefined,
      send: ({ attempt, timeout }) => {
        asked.push('send');
        const send = { client: ticket.client, at: this.now, attempt, timeout };
        sends.push(send);
        const told = this.respond(send);
        const settle = (outcome: Outcome) => (): void => {
          forget(timer);
          forget(reply);
          story.status = outcome.kind === 'response' ? outcome.status : undefined;
          drive.settled(outcome);
        };
        timer = this.at(this.now + timeout, settle(failure('timeout', true, timeout)));
        if (told !== 'silence') reply = this.at(this.now + told.after, settle({ ...told.outcome, took: told.after }));
      },
      cancelSend: () => {
        asked.push('cancelSend');
        forget(timer);
        forget(reply);
        return true;
      },
      discard: () => {
        asked.push('discard');
      },
      sleep: (ms) => {
        asked.push(`sleep ${ms}`);
        timer = this.at(this.now + ms, () => drive.woke());
      },
      cancelSleep: () => {
        asked.push('cancelSleep');
        forget(timer);
      },
      rearm: () => this.rearm(),
      finish: (verdict) => {
        asked.push(verdict.kind);
        story.verdict = verdict;
        story.endedAt = this.now;
        if (verdict.kind === 'forward') this.at(this.now + (call.download ?? 0), () => drive.ended());
        call.onVerdict?.(story);
      },
    };
    const ticket = new Ticket(
      'up',
      call.client ?? 'client',
      call.weight ?? 1,
      call.refs ?? [SHARED],
      (admission, now) => drive.settle(admission, now),
    );
    const drive = new Drive({
      script: live(requestFacts(call.facts), planOf({ mode: this.#mode, ...call.plan }), this.random, this.now),
      gate: this.gate,
      ticket,
      effects,
      clock: { now: () => this.now },
      listen: (event) => this.events.push(event),
      pollWait: call.pollWait,
    });
    const story: Story = {
      call,
      drive,
      startedAt: this.now,
      sends,
      asked,
      verdict: undefined,
      endedAt: Number.NaN,
      status: undefined,
    };
    drive.start();
    return story;
  }

  /** A ticket that arrives now, without an exchange. */
  arrive(arrival: Arrival = {}): Standing {
    const {
      client = 'client',
      weight = 1,
      refs = [SHARED],
      deadline = this.now + 10_000,
      bodyInHand = true,
      nest,
      credential = '',
    } = arrival;
    const ticket = new ShownTicket(credential, 'up', client, weight, refs, (admission, now) => {
      standing.told = admission;
      standing.at = now;
    });
    ticket.bodyInHand = bodyInHand;
    ticket.nest = nest;
    const standing: Standing = { ticket, told: undefined, at: this.now };
    standing.told = this.gate.arrive(ticket, deadline, this.now);
    this.rearm();
    return standing;
  }

  /** What was admitted is sent now. */
  send(standing: Standing): void {
    this.gate.sent(standing.ticket, this.now);
  }

  /** The head of what was sent, and its end. */
  answer(standing: Standing, outcome: Outcome): void {
    this.gate.head(standing.ticket, outcome, this.now);
    this.gate.end(standing.ticket, this.now);
    this.rearm();
  }

  /** Sent and answered now, and gone. */
  serve(standing: Standing, outcome: Outcome = response(200)): void {
    this.send(standing);
    this.answer(standing, outcome);
    this.gate.leave(standing.ticket);
  }

  /** A client that does as it is told: refused, it comes back after the whole seconds of its Retry-After. */
  obey(call: Call, onEnd: (story: Story, tries: number) => void, tries = 1): void {
    this.call({
      ...call,
      onVerdict: (story) => {
        const { verdict } = story;
        if (verdict?.kind !== 'refuse') return onEnd(story, tries);
        const seconds = Number(formatRetryAfter(verdict.retryAfter ?? 0, this.random));
        this.at(this.now + 1000 * seconds, () => this.obey(call, onEnd, tries + 1));
      },
    });
  }

  /** Calls at a steady rate, from now until `end`; a little apart in time from any other client's. */
  stream(perSecond: number, end: Millis, call: Call = {}): Story[] {
    const stories: Story[] = [];
    const next = (at: Millis): void => {
      if (at >= end) return;
      this.at(at, () => {
        stories.push(this.call(call));
        next(at + 1000 / perSecond);
      });
    };
    next(this.now + (this.random() * 1000) / perSecond);
    return stories;
  }

  rearm(): void {
    const at = this.gate.nextWake();
    if (this.#wake?.at === at) return;
    if (this.#wake !== undefined) this.#agenda.remove(this.#wake);
    this.#wake = undefined;
    if (at === undefined) return;
    this.#wake = this.at(at, () => {
      this.#wake = undefined;
      this.gate.wake(this.now);
      this.rearm();
    });
  }

  /** The limit that all share. */
  get limit(): Limit {
    const limit = this.store.find(SHARED);
    if (limit === undefined) throw new Error('the upstream has no limit that all share');
    return limit;
  }

  ofType<T extends TideEvent['type']>(type: T): Extract<TideEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<TideEvent, { type: T }> => event.type === type);
  }
}

/** An upstream that answers 200 within its limit and 429 beyond, `latency` after. */
export function limitedBy(model: LimitModel, world: { readonly now: Millis }, latency: Millis): Respond {
  return () => {
    const admission = model.arrive(world.now);
    return { outcome: response(admission.accepted ? 200 : 429), after: latency };
  };
}

/** Of the exchanges that have ended, those that ended well. */
export function successShare(stories: readonly Story[]): number {
  const ended = stories.filter((story) => story.verdict !== undefined);
  return ended.filter(isSuccess).length / ended.length;
}

export function isSuccess({ verdict, status = 0 }: Story): boolean {
  return verdict?.kind === 'forward' && status < 400;
}
