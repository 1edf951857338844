import type { Effects } from '../../core/exchange/effects.ts';
import { Drive } from '../../core/exchange/exchange-driver.ts';
import type { CutReason } from '../../core/events/proxy-events.ts';
import { tellBlamed } from '../../core/limits/attributed-limit.ts';
import type { KeyRecord, Millis, Outcome, RequestFacts, Verdict } from '../../core/exchange/attempt-outcome.ts';
import { isRepeatable } from '../../core/exchange/attempt-outcome.ts';
import type { Description, LastAttempt, Step, Trace, Watched } from '../../core/exchange/exchange-observer.ts';
import { live } from '../../core/exchange/polling-exchange.ts';
import type { SendStep } from '../../core/exchange/steps.ts';
import { type Arrival, describeArrival, factsOf, planOf } from './routed-request.ts';
import { ArrivedWrite } from '../idempotency/keyed-request.ts';
import type { RequestBody } from './request-body.ts';
import type { ClientPolling } from '../response/client-polling.ts';
import { clientPollingOf } from '../response/client-polling.ts';
import type { ExchangeContext } from './exchange-context.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { Http1Inbound } from '../server/server-request.ts';
import { openBody } from './read-body.ts';
import type { Problem } from '../response/problem-details.ts';
import { fault, GOING, problemOf, unknownFor } from '../response/problem-details.ts';
import { type Head, Reply } from '../response/client-response.ts';
import { withRetryAfter } from '../headers/retry-after-header.ts';
import type { Listed } from '../../core/collections/active-set.ts';
import type { Sender } from '../upstream/upstream-call-owner.ts';
import { Sends } from '../upstream/upstream-call.ts';
import { ticketOf } from './request-ticket.ts';
import { traceIdOf, traceparentOf } from '../headers/trace-context.ts';
import type { Carried } from '../server/tunnel.ts';
import { openTunnel } from '../server/tunnel.ts';

/** The proxy’s interpreter of one exchange. What happens, and when, the script and the gate say. */
export class Life implements Effects, Sender, Watched, Listed {
  place = -1;
  steps: Step[] | undefined;
  trace: Trace | undefined;
  readonly drive: Drive<Life>;
  readonly #context: ExchangeContext;
  readonly #arrival: Arrival;
  readonly #reply: Reply;
  /** At its arrival. */
  readonly #facts: RequestFacts;
  readonly #write: ArrivedWrite;
  readonly #since: Millis;
  readonly #onOver: (life: Life) => void;
  readonly #sends: Sends;
  readonly #polling: ClientPolling | undefined;
  #body: RequestBody | undefined;
  #sleep: NodeJS.Timeout | undefined;
  /** The client has gone, and its write is finished all the same. */
  #detached = false;
  #closed = false;
  /** What has gone through since the protocol was changed. */
  #carried: Carried | undefined;
  #verdict: Verdict | undefined;
  /** Of the request itself, until it is told. */
  #fault: Problem | undefined;

  /** @param onOver called once, when nothing of it is left */
  constructor(context: ExchangeContext, arrival: Arrival, onOver: (life: Life) => void) {
    this.#onOver = onOver;
    this.#context = context;
    this.#arrival = arrival;
    this.#reply = new Reply(context, arrival);
    this.#polling = clientPollingOf(context, arrival);
    this.#write = new ArrivedWrite(context, arrival);
    const wait = this.#polling?.wait;
    this.#facts = wait === undefined ? factsOf(arrival) : { ...factsOf(arrival), wait };
    this.#sends = new Sends(context, arrival, this);
    this.#since = context.clock.now();
    const ticket = ticketOf(arrival, context.hash, (admission, now) => this.drive.settle(admission, now));
    const answerTime = context.answerTimes.of(arrival.route.name).get;
    this.drive = new Drive<Life>({
      script: live(this.#facts, planOf(arrival), context.random, this.#since, answerTime),
      gate: context.gate,
      ticket,
      effects: this,
      clock: context.clock,
      listen: context.listen,
      request: arrival.requestId,
      watcher: context.watcher,
      pollWait: this.#polling,
    });
  }

  /** Whether it is sent, or may yet be, to these. */
  goesTo(endpoints: Endpoints): boolean {
    return this.#arrival.route.target.endpoints === endpoints;
  }

  start(): void {
    const { request, response, route } = this.#arrival;
    this.#context.listen({ type: 'arrived', route: route.name });
    if (this.#write.key?.from === 'minted') {
      this.#context.listen({ type: 'key', upstream: route.target.name, event: 'minted' });
    }
    if (request instanceof Http1Inbound) request.owner = this;
    response.on('close', this.#onClose);
    this.drive.start();
  }

  /** The rest of its body cannot be read. */
  onMalformed(problem: Problem): void {
    if (!this.drive.isDone) this.#giveUp(problem);
    else if (!this.#sends.isOver) this.#reply.cut(); // the upstream answers what it will never have whole
  }

  /** We go away: what waits for something that comes later than this is told. */
  drain(by: Millis): void {
    this.drive.drain(by);
  }

  /** We go now: who still waits is told. What has been sent ends with its connection. */
  expire(): void {
    this.drive.expire();
    if (this.#sends.count === 0) this.#giveUp(GOING);
  }

  // — Watched: what can be told of it —

  describe(): Description {
    return describeArrival(this.#arrival, this.#context.proto, this.#write.key);
  }

  lastAttempt(): LastAttempt {
    const { outcome, ticket } = this.drive;
    const { label: endpoint, origin } = this.#sends.endpoint ?? {};
    const limit = outcome?.kind === 'response' ? tellBlamed(ticket, outcome) : undefined;
    return { endpoint, origin, outcome, cause: this.#sends.failure?.cause, limit };
  }

  // — Effects: what the script asks for —

  readBody(): void {
    if (!this.#arrival.request.hasBody) return this.drive.bodyRead(true);
    this.#body = openBody(this.#arrival, this.#context, this.#write, {
      onRead: (replayable, keyed) => this.drive.bodyRead(replayable, keyed),
      onFault: (problem) => this.#giveUp(problem),
    });
    this.#body.read();
  }

  claim(deadline: Millis): void {
    this.#write.claim(this.drive, deadline, this.#body);
  }

  cancelClaim(): boolean {
    return this.#write.cancelClaim();
  }

  lookUp(): KeyRecord | undefined {
    return this.#write.lookUp();
  }

  send({ timeout, startBy, isPinned }: SendStep): void {
    const pinnedTo = isPinned ? (this.#write.endpoint ?? this.#sends.reached) : undefined;
    const mayRepeat = isRepeatable(this.#facts, this.#write.key !== undefined);
    this.#sends.begin({ timeout, startBy, body: this.#body, isRepeatable: mayRepeat, pinnedTo });
  }

  cancelSend(): boolean {
    // What is not all there is not done, as a rule; the key of a write that may be an exception is kept open.
    const mayBeDone = this.#body?.isUnread !== true || this.#write.key !== undefined;
    return this.#sends.cancel() && mayBeDone;
  }

  discard(): void {
    this.#sends.discard();
  }

  sleep(ms: Millis): void {
    this.#sleep = setTimeout(() => this.drive.woke(), Math.ceil(ms));
  }

  cancelSleep(): void {
    clearTimeout(this.#sleep);
  }

  rearm(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: Verdict): void {
    this.#verdict = verdict;
    let isHeard = true;
    if (verdict.kind === 'forward') isHeard = this.#forward(verdict);
    else if (verdict.kind === 'gone') this.#answerFault(verdict.unknown);
    else this.#reply.answer(problemOf(verdict, this.#sends.failure), verdict.attempts);
    this.#write.end(verdict, this.drive.outcome, isHeard, this.#sends.reached);
    this.#over();
  }

  // — Sender: what becomes of a send —

  onSending(endpoint: string): void {
    this.#write.sending(endpoint);
  }

  onOutcome(outcome: Outcome): void {
    this.#write.note(outcome, this.#body?.isStreamed === true);
    this.drive.settled(outcome);
  }

  onUnsendable(detail: string): void {
    this.#giveUp(fault(400, 'Bad request', `The request cannot be passed on: ${detail}.`, 'unsendable'));
  }

  onEnd(rest: Buffer | undefined): void {
    this.drive.ended();
    this.#reply.end(rest);
  }

  onBroken(why?: CutReason): void {
    this.#write.unheard();
    this.drive.ended();
    this.#reply.cut(why);
  }

  // — what happens to the client —

  /** The client has gone, or everything has been written. */
  readonly #onClose = (): void => {
    this.#closed = true;
    if (this.drive.isDone) {
      const isWhole = this.#arrival.response.writableFinished || this.#carried !== undefined;
      if (!isWhole && this.#verdict?.kind === 'forward') {
        this.#write.unheard();
        this.#reply.cut();
        this.#sends.cancel();
        this.drive.ended();
      }
      return this.#over();
    }
    // A keyed write whose body is here is worth finishing when its route says so.
    const isHere = this.#write.key !== undefined && this.#sends.count > 0 && this.#body?.isUnread !== true;
    if (this.#arrival.route.plan.retry.onClientGone === 'finish' && isHere) this.#detached = true;
    else this.drive.gone();
  };

  /** The request itself is at fault: its client is told, and nothing is learned from it. */
  #giveUp(problem: Problem): void {
    if (this.drive.isDone) return;
    this.#fault = problem;
    this.drive.gone();
    this.#answerFault(false);
  }

  /** Once, where there is a fault. @param unknown its write may have been done, by an attempt of its own */
  #answerFault(unknown: boolean): void {
    const problem = this.#fault;
    this.#fault = undefined;
    if (problem === undefined) return;
    this.#reply.answer(unknown || this.#write.mayOthersBeDone() ? unknownFor(problem) : problem, this.#sends.count);
  }

  /** Returns whether its client gets to hear it. */
  #forward({ unknown, attempts, polls, retryAfter }: Extract<Verdict, { readonly kind: 'forward' }>): boolean {
    const taken = this.#sends.takeHead();
    const told = taken === undefined ? undefined : (this.#polling?.tell(taken, this.drive.outcome, polls) ?? taken);
    const head = told && withRetryAfter(told, retryAfter, this.#context.random);
    if (head === undefined || this.#closed) {
      this.#sends.discard();
      this.drive.ended();
      return false;
    }
    if (head.status === 101) {
      this.#switch(head, attempts);
    } else if (!this.#reply.forward(head, attempts, unknown)) {
      this.#sends.cancel();
      this.drive.ended();
      return false;
    } else {
      const mayPause = isEventStream(head.headers);
      this.#sends.forward(this.#arrival.route.target.streamIdle, mayPause);
      if (mayPause) this.drive.ended();
    }
    return true;
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
    // Request and response are kept for a while yet, by those who write them: what they keep is copied by each scavenge.
    this.#arrival.response.off('close', this.#onClose);
    if (this.#arrival.request instanceof Http1Inbound) this.#arrival.request.owner = undefined;
    this.#onOver(this);
    const { queued, slept, wouldHave } = this.drive;
    const { count: attempts, failure } = this.#sends;
    const traceId = this.trace?.traceId ?? traceIdOf(traceparentOf(this.#arrival.request));
    const spent = { since: this.#since, attempts, queued, slept, wouldHave, carried: this.#carried, failure, traceId };
    const record = this.#reply.record(this.#verdict, spent);
    this.#context.listen({ type: 'done', record });
    this.#context.watcher?.over(this, record);
  }
}
