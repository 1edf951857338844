import { AnswerTimes } from '../../core/retry/latency-estimates.ts';
import type { Bound } from '../../core/overload/resource-bound.ts';
import { OpenGate } from '../../core/admission/bypass-gate.ts';
import { Polls } from '../../core/polling/poll-registry.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { isSafeMethod } from '../../core/exchange/attempt-outcome.ts';
import { addressOf, clientAddress } from './client-address.ts';
import type { Capacity } from '../overload/request-capacity.ts';
import type { CheckLife } from '../ext-authz/check-handler.ts';
import { Checks } from '../ext-authz/ext-authz-api.ts';
import type { ExchangeContext, ProxyContext } from './exchange-context.ts';
import { preflightMethod } from '../headers/cors-headers.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import type { Entrance, Reception } from '../server/request-source.ts';
import { isLoop, isUsableRequestId } from '../headers/forward-headers.ts';
import { heapLimit } from '../overload/v8-heap.ts';
import { keyAtArrival } from '../idempotency/idempotency-key.ts';
import type { Inbound } from '../server/server-request.ts';
import { findFault, findRepeated } from '../server/server-request.ts';
import { KeyBook } from '../idempotency/idempotency-registry.ts';
import { Life } from './request-handler.ts';
import { maxForwardsOf } from '../headers/max-forwards.ts';
import type { Outbound } from '../server/server-response.ts';
import type { Snapshot } from './snapshot-types.ts';
import type { Problem } from '../response/problem-details.ts';
import { Preflights } from '../response/cors-preflights.ts';
import { fault } from '../response/problem-details.ts';
import { Refusals } from '../response/rejections.ts';
import { Roster } from '../../core/collections/active-set.ts';
import { rewriteTarget } from './router.ts';
import type { Upgrade } from '../server/upgrade.ts';

export interface ProxyOptions {
  readonly context: Omit<ProxyContext, 'isDraining' | 'polls' | 'keys' | 'answerTimes'>;
  /** The config as it is now: each exchange takes the snapshot of its arrival, and keeps it. */
  readonly snapshot: () => Snapshot;
  /** Unique among processes: in Via, and in request ids. */
  readonly instance: string;
  /** How much of all that this process can take. */
  readonly capacity: Capacity;
}

/** The proxy: takes requests from wherever they come, and is with each until nothing of it is left. */
export class Proxy implements Reception {
  readonly #options: ProxyOptions;
  readonly #context: ProxyContext;
  readonly #lives = new Roster<Life | CheckLife>();
  readonly #checks: Checks;
  readonly #preflights: Preflights;
  /** Of requests that no limit concerns. */
  readonly #unlimited: ExchangeContext;
  readonly refusals: Refusals;
  #entrance: Entrance | undefined;
  #requests = 0;
  /** Set once it goes away: nothing goes on for longer. */
  #drainBy: Millis | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#context = {
      ...options.context,
      isDraining: () => this.#drainBy !== undefined,
      keys: new KeyBook(heapLimit()),
      answerTimes: new AnswerTimes(),
      polls: new Polls(),
    };
    const { capacity, snapshot } = options;
    const parts = { context: this.#context, snapshot, nextId: () => this.#nextId() };
    this.#preflights = new Preflights(parts);
    this.refusals = new Refusals({ ...parts, capacity, preflights: this.#preflights });
    this.#unlimited = { ...this.#context, gate: new OpenGate(options.context.gate) };
    this.#checks = new Checks({
      context: this.#context,
      refusals: this.refusals,
      nextId: () => this.#nextId(),
      begin: (life) => this.#begin(life),
      onOver: this.#onLifeOver,
    });
  }

  get inFlight(): number {
    return this.#lives.size;
  }

  /** Whether a request in flight goes there. Looks at all of them: for what happens seldom. */
  isUsing(endpoints: Endpoints): boolean {
    for (const life of this.#lives) if (life.goesTo(endpoints)) return true;
    return false;
  }

  get bounds(): readonly Bound[] {
    const { keys, polls } = this.#context;
    const own = [this.#options.capacity.bound(this.#count()), ...keys.bounds, ...polls.bounds];
    return [...(this.#entrance?.bounds ?? []), ...own];
  }

  /** As `Entrance.open`; once. */
  open(entrance: Entrance): Promise<string> {
    this.#entrance = entrance;
    return entrance.open(this);
  }

  /** Takes no new connections, and ends each one with the response it is at. Requests in flight go on. */
  drain(by: Millis): void {
    this.#drainBy = by;
    for (const life of this.#lives) life.drain(by);
    this.#entrance?.drain();
  }

  /** The time of a drain is over: tells who still waits for a turn, or for whom it is waited. */
  expire(): void {
    for (const life of this.#lives) life.expire();
  }

  /** Ends what is left, at once; after a drain that left nothing, when the last bytes have gone out. */
  async close(): Promise<void> {
    if (this.#drainBy !== undefined && this.#lives.size === 0) await this.#entrance?.settle();
    await this.#entrance?.close();
    this.#context.gateTimer.stop();
  }

  full(): Problem | undefined {
    return this.#options.capacity.refuse(this.#count());
  }

  shed(): Problem | undefined {
    return this.#options.capacity.shed();
  }

  handle(request: Inbound, response: Outbound, upgrade?: Upgrade): void {
    const found = findFault(request);
    if (found !== undefined) return this.refusals.refuse(request, response, found.problem, found.isUnframed);
    const snapshot = this.#options.snapshot();
    const { check } = snapshot;
    if (check !== undefined && this.#checks.take(check, { request, response, snapshot, upgrade })) return;
    if (isLoop(request.headers.via, this.#context.via)) {
      return this.refusals.refuse(
        request,
        response,
        fault(508, 'Loop detected', 'This request has been here before.', 'loop'),
      );
    }
    const asked = preflightMethod(request);
    const isPreflight = asked !== undefined;
    const { router } = snapshot;
    const { host } = request.headers;
    const route = isPreflight
      ? router.findPreflight(asked, host, request.path)
      : router.find(request.verb, host, request.path);
    if (route === undefined) {
      return this.refusals.refuse(request, response, fault(404, 'Not found', 'No route leads there.', 'no_route'));
    }
    if (isPreflight && route.cors !== undefined) {
      return this.#preflights.answer(request, response, route, route.cors);
    }
    if (maxForwardsOf(request) === 0) return this.refusals.answerAsLast(request, response, route.target.identities);
    const { identities, idempotency } = route.target;
    const repeated =
      findRepeated(request, identities) ??
      (isSafeMethod(request.verb) ? undefined : findRepeated(request, idempotency.accountHeaders));
    if (repeated !== undefined) {
      const detail = `The request has more than one ${repeated}: whose it is would be a matter of opinion.`;
      return this.refusals.refuse(request, response, fault(400, 'Bad request', detail, 'bad_request'));
    }
    // `/v1//x` would become `//x`, which many take for the name of a host.
    if (route.rewritePrefix !== undefined && rewriteTarget(request.target, route).startsWith('//')) {
      return this.refusals.refuse(request, response, NAMES_A_HOST);
    }
    const peer = addressOf(request.socket.remoteAddress);
    const client = snapshot.identify(request, clientAddress(request, peer, snapshot.trusts));
    const requestId = this.#nextId();
    const given = request.headers['x-request-id'];
    const xRequestId = typeof given === 'string' && isUsableRequestId(given) ? given : requestId;
    const key = keyAtArrival(request, route);
    const told = { request, response, upgrade, route, snapshot, client, key, peer, requestId, xRequestId };
    const life = isPreflight
      ? new Life(this.#unlimited, { ...told, isPreflight }, this.#onLifeOver)
      : new Life(this.#context, told, this.#onLifeOver);
    this.#begin(life);
  }

  #begin(life: Life | CheckLife): void {
    this.#lives.add(life);
    if (this.#drainBy !== undefined) life.drain(this.#drainBy);
    life.start();
  }

  readonly #onLifeOver = (ended: Life | CheckLife): void => {
    this.#lives.remove(ended);
  };

  /** Requests that take memory: those that go on, and those that wait for their turn on their connection. */
  #count(): number {
    return this.#lives.size + (this.#entrance?.waiting ?? 0);
  }

  #nextId(): string {
    this.#requests += 1;
    return `${this.#options.instance}-${this.#requests.toString(36)}`;
  }
}

const NAMES_A_HOST = fault(
  400,
  'Bad request',
  'The request has a path that starts with two slashes where it goes.',
  'bad_request',
);
