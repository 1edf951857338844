import type { Effects } from '../drive.ts';
import { Drive } from '../drive.ts';
import { exchange } from '../exchange.ts';
import { Ticket } from '../policy/ticket.ts';
import type { Millis, Outcome, RequestFacts, Verdict } from '../policy/types.ts';
import { isIdempotentMethod } from '../policy/types.ts';
import type { Description, LastAttempt, Step, Trace, Watched } from '../policy/watch.ts';
import type { Arrival } from './arrival.ts';
import { describeArrival, factsOf, limitsOf, planOf } from './arrival.ts';
import { RequestBody } from './body.ts';
import type { ProxyContext } from './context.ts';
import type { Endpoints } from './endpoints.ts';
import { Http1Inbound } from './inbound.ts';
import type { Late } from './patience.ts';
import type { Problem } from './problem.ts';
import { fault, problemOf } from './problem.ts';
import type { Head } from './reply.ts';
import { Reply } from './reply.ts';
import type { Listed } from './roster.ts';
import type { Sender } from './sends.ts';
import { Sends } from './sends.ts';
import { traceIdOf, traceparentOf } from './trace-context.ts';
import type { Carried } from './tunnel.ts';
import { openTunnel } from './tunnel.ts';

/** The proxy’s interpreter of one exchange. What happens, and when, the script and the gate say. */
export class Life implements Effects, Sender, Watched, Listed {
  place = -1;
  steps: Step[] | undefined;
  trace: Trace | undefined;
  readonly drive: Drive<Life>;
  readonly #context: ProxyContext;
  readonly #arrival: Arrival;
  readonly #reply: Reply;
  readonly #facts: RequestFacts;
  readonly #since: Millis;
  readonly #onOver: (life: Life) => void;
  readonly #sends: Sends;
  #body: RequestBody | undefined;
  #sleep: NodeJS.Timeout | undefined;
  /** The client has gone, and its write is finished all the same. */
  #detached = false;
  #closed = false;
  /** What has gone through since the protocol was changed. */
  #carried: Carried | undefined;
  #verdict: Verdict | undefined;

  /** @param onOver called once, when nothing of it is left */
  constructor(context: ProxyContext, arrival: Arrival, onOver: (life: Life) => void) {
    const { route, client } = arrival;
    this.#onOver = onOver;
    this.#context = context;
    this.#arrival = arrival;
    this.#reply = new Reply(context, arrival);
    this.#facts = factsOf(arrival);
    const { keyed, method } = this.#facts;
    this.#sends = new Sends(context, arrival, this, keyed || isIdempotentMethod(method));
    this.#since = context.clock.now();
    const ticket = new Ticket(
      route.target.name,
      client.hash,
      client.weight,
      limitsOf(arrival, context.hash),
      (admission, now) => this.drive.settle(admission, now),
    );
    ticket.nest = client.nest;
    this.drive = new Drive<Life>({
      script: exchange(this.#facts, planOf(arrival), context.random, this.#since),
      gate: context.gate,
      ticket,
      effects: this,
      clock: context.clock,
      listen: context.listen,
      request: arrival.requestId,
      watcher: context.watcher,
    });
  }

  /** Whether it is sent, or may yet be, to these. */
  goesTo(endpoints: Endpoints): boolean {
    return this.#arrival.route.target.endpoints === endpoints;
  }

  start(): void {
    const { request, response, route } = this.#arrival;
    this.#context.listen({ type: 'arrived', route: route.name });
    if (request instanceof Http1Inbound) request.owner = this;
    response.on('close', this.#onClose);
    this.drive.start();
  }

  /** The rest of its body cannot be read. */
  onMalformed(problem: Problem): void {
    if (!this.drive.isDone) this.#giveUp(problem);
    else if (!this.#sends.isOver) this.#reply.cut(); // the upstream answers what it will never have whole
  }

  /** We go now: who still waits is told. What has been sent ends with its connection. */
  expire(): void {
    this.drive.expire();
    if (this.#sends.count === 0) this.#giveUp(problemOf(DRAINING));
  }

  // — Watched: what can be told of it —

  describe(): Description {
    return describeArrival(this.#arrival, this.#context.proto);
  }

  lastAttempt(): LastAttempt {
    const { endpoint, failure } = this.#sends;
    const { outcome } = this.drive;
    return { endpoint: endpoint?.label, origin: endpoint?.origin, outcome, cause: failure?.cause };
  }

  // — Effects: what the script asks for —

  readBody(): void {
    const { request, response, route, snapshot } = this.#arrival;
    if (!request.hasBody) return this.drive.bodyRead(true);
    this.#body = new RequestBody(request, {
      limit: route.replayLimit,
      memory: this.#context.replayMemory,
      idle: snapshot.bodyIdle,
      rate: snapshot.bodyRate,
      clock: this.#context.clock,
      onRead: (replayable) => this.drive.bodyRead(replayable),
      onLate: (late) => this.#giveUp(LATE[late]),
    });
    if (request.expectsContinue) response.writeContinue();
    request.expectsContinue = false;
    this.#body.read();
  }

  send(_attempt: number, timeout: Millis): void {
    this.#sends.begin(timeout, this.#body);
  }

  cancelSend(): void {
    this.#sends.cancel();
  }

  discard(): void {
    this.#sends.discard();
  }

  sleep(ms: Millis): void {
    this.#sleep = setTimeout(this.#onWake, Math.ceil(ms));
  }

  cancelSleep(): void {
    clearTimeout(this.#sleep);
  }

  rearm(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: Verdict): void {
    this.#verdict = verdict;
    if (verdict.kind === 'forward') this.#forward(verdict.unknown, verdict.attempts);
    else if (verdict.kind !== 'gone') this.#reply.answer(problemOf(verdict, this.#sends.failure), verdict.attempts);
    this.#over();
  }

  // — Sender: what becomes of a send —

  onOutcome(outcome: Outcome): void {
    this.drive.settled(outcome);
  }

  onUnsendable(detail: string): void {
    this.#giveUp(fault(400, 'Bad request', `The request cannot be passed on: ${detail}.`, 'unsendable'));
  }

  onEnd(rest: Buffer | undefined): void {
    this.drive.ended();
    this.#reply.end(rest);
  }

  onBroken(): void {
    this.drive.ended();
    this.#reply.cut();
  }

  // — what happens to the client —

  /** The client has gone, or everything has been written. */
  readonly #onClose = (): void => {
    this.#closed = true;
    if (this.drive.isDone) {
      const whole = this.#arrival.response.writableFinished || this.#carried !== undefined;
      if (!whole && this.#verdict?.kind === 'forward') this.#cutForward();
      return this.#over();
    }
    if (this.#mayFinish()) this.#detached = true;
    else this.drive.gone();
  };

  /** A keyed write whose body is here is worth finishing when its route says so. */
  #mayFinish(): boolean {
    if (this.#arrival.route.plan.retry.onClientGone !== 'finish') return false;
    return this.#facts.keyed && this.#sends.count > 0 && this.#body?.isUnread !== true;
  }

  #cutForward(): void {
    this.#reply.cut();
    this.#sends.cancel();
    this.drive.ended();
  }

  readonly #onWake = (): void => {
    this.drive.woke();
  };

  /** The request itself is at fault: its client is told, and nothing is learned from it. */
  #giveUp(problem: Problem): void {
    if (this.drive.isDone) return;
    this.#reply.answer(problem, this.#sends.count);
    this.drive.gone();
  }

  #forward(unknown: boolean, attempts: number): void {
    const head = this.#sends.takeHead();
    if (head === undefined || this.#closed) {
      this.#sends.discard();
      this.drive.ended();
    } else if (head.status === 101) {
      this.#switch(head, attempts);
    } else if (!this.#reply.forward(head, attempts, unknown)) {
      this.#sends.cancel();
      this.drive.ended();
    } else {
      const mayPause = isEventStream(head.headers);
      this.#sends.forward(this.#arrival.route.target.streamIdle, mayPause);
      if (mayPause) this.drive.ended();
    }
  }

  /** From here on both sides say what they like for as long as they like, and nothing is retried. */
  #switch(head: Head, attempts: number): void {
    const upstream = this.#sends.takeSwitched();
    this.drive.ended();
    if (upstream === undefined) return;
    const client = this.#reply.switch(head, attempts);
    this.#carried = { toUpstream: 0, toClient: 0 };
    this.#context.listen({ type: 'upgraded', route: this.#arrival.route.name });
    openTunnel(client, upstream, this.#carried, this.#onClose);
  }

  /** Once, when both the script and the client are through. */
  #over(): void {
    if (this.#verdict === undefined || !(this.#closed || this.#detached)) return;
    this.#sends.close();
    this.#body?.release();
    if (!this.#closed) this.#arrival.response.off('close', this.#onClose);
    this.#onOver(this);
    const { queued, slept, wouldHave } = this.drive;
    const { count: attempts, failure } = this.#sends;
    const carried = this.#carried;
    const traceId = this.trace?.traceId ?? traceIdOf(traceparentOf(this.#arrival.request));
    const spent = { since: this.#since, attempts, queued, slept, wouldHave, carried, cause: failure?.cause, traceId };
    const record = this.#reply.record(this.#verdict, spent);
    this.#context.listen({ type: 'done', record });
    this.#context.watcher?.over(this, record);
  }
}

const DRAINING = { kind: 'refuse', why: 'draining', retryAfter: 1000, attempts: 0, retryEnd: undefined } as const;

const LATE: Readonly<Record<Late, Problem>> = {
  idle: fault(408, 'Request body too slow', 'The body paused for too long.', 'body_idle'),
  slow: fault(408, 'Request body too slow', 'The body came more slowly than it may.', 'body_slow'),
};

/** ServerResponse.getHeader does not know what writeHead was given as a list (Node 24). */
function isEventStream(headers: readonly string[]): boolean {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 12 || name.toLowerCase() !== 'content-type') continue;
    return /^\s*text\/event-stream\s*(?:;|$)/i.test(headers[i + 1] ?? '');
  }
  return false;
}
