import type { Duplex } from 'node:stream';
import type { Effects } from '../drive.ts';
import { Drive } from '../drive.ts';
import { exchange } from '../exchange.ts';
import { readHints } from '../policy/hints.ts';
import { Ticket } from '../policy/ticket.ts';
import type { ErrorReason, Millis, RequestFacts, Verdict } from '../policy/types.ts';
import type { Arrival } from './arrival.ts';
import { factsOf, limitsOf, outboundHeaders, planOf } from './arrival.ts';
import type { AttemptOwner } from './attempt.ts';
import { Attempt } from './attempt.ts';
import { RequestBody } from './body.ts';
import type { ProxyContext } from './context.ts';
import { fault, problemOf } from './problem.ts';
import type { Head } from './reply.ts';
import { Reply } from './reply.ts';
import { rewriteTarget } from './router.ts';

/** The proxy's interpreter of one exchange: sockets and one timer. What happens, and when, the script and the gate say. */
export class Life implements Effects, AttemptOwner {
  readonly drive: Drive;
  readonly #context: ProxyContext;
  readonly #arrival: Arrival;
  readonly #reply: Reply;
  readonly #facts: RequestFacts;
  readonly #since: Millis;
  readonly #onOver: (life: Life) => void;
  #headers: string[] | undefined;
  #body: RequestBody | undefined;
  #attempt: Attempt | undefined;
  #attempts = 0;
  #sentAt: Millis = 0;
  #timeout: Millis = 0;
  #foundPoolFull = false;
  /** A response that the script has not decided on yet. */
  #held: Head | undefined;
  /** One timer for whatever is waited for: an attempt, a sleep, a silent stream. */
  #timer: NodeJS.Timeout | undefined;
  /** The client has gone, and its write is finished all the same. */
  #detached = false;
  #closed = false;
  #verdict: Verdict | undefined;

  /** @param onOver called once, when nothing of it is left */
  constructor(context: ProxyContext, arrival: Arrival, onOver: (life: Life) => void) {
    const { route, client } = arrival;
    this.#onOver = onOver;
    this.#context = context;
    this.#arrival = arrival;
    this.#reply = new Reply(context, arrival);
    this.#facts = factsOf(arrival);
    this.#since = context.clock.now();
    const ticket = new Ticket(
      route.target.name,
      client.hash,
      client.weight,
      limitsOf(arrival, context.hash),
      (admission, now) => this.drive.settle(admission, now),
    );
    ticket.nest = client.nest;
    this.drive = new Drive({
      script: exchange(this.#facts, planOf(arrival), context.random, this.#since),
      gate: context.gate,
      ticket,
      effects: this,
      clock: context.clock,
      listen: context.listen,
    });
  }

  start(): void {
    const { response, route } = this.#arrival;
    this.#context.listen({ type: 'arrived', route: route.name });
    response.on('close', this.#onClose);
    this.drive.start();
  }

  /** Its request has been read, or is being sent: what is written to this connection now, its client takes for the answer. */
  awaitsAnswerOn(socket: Duplex): boolean {
    return this.#arrival.request.socket === socket && this.#body?.isBeingRead !== true;
  }

  // — Effects: what the script asks for —

  readBody(): void {
    const { request, response, route, snapshot } = this.#arrival;
    if (!request.hasBody) return this.drive.bodyRead(true);
    this.#body = new RequestBody(request, {
      limit: route.replayLimit,
      memory: this.#context.replayMemory,
      idle: snapshot.bodyIdle,
      onRead: (replayable) => this.drive.bodyRead(replayable),
      onIdle: () => this.#giveUp(fault(408, 'Request body too slow', 'The body paused for too long.', 'body_idle')),
    });
    if (request.expectsContinue) response.writeContinue();
    request.expectsContinue = false;
    this.#body.read();
  }

  send(attempt: number, timeout: Millis): void {
    const { request, route } = this.#arrival;
    const { target } = route;
    this.#attempts = attempt;
    this.#sentAt = this.#context.clock.now();
    this.#attempt = new Attempt(this);
    this.#timeout = timeout;
    this.#arm(timeout, this.#onAttemptTimeout);
    target.load.begin();
    this.#foundPoolFull = target.load.isFull();
    this.#headers ??= outboundHeaders(this.#arrival, this.#context.via);
    target.dispatcher.dispatch(
      {
        origin: target.origin,
        method: request.verb,
        path: rewriteTarget(request.target, route),
        headers: this.#headers,
        body: this.#body?.payload() ?? null,
      },
      this.#attempt,
    );
  }

  cancelSend(): void {
    this.#disarm();
    this.#attempt?.cancel();
  }

  discard(): void {
    this.#held = undefined;
    this.#attempt?.discard();
  }

  sleep(ms: Millis): void {
    this.#arm(ms, this.#onWake);
  }

  cancelSleep(): void {
    this.#disarm();
  }

  rearm(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: Verdict): void {
    this.#verdict = verdict;
    this.#disarm();
    if (verdict.kind === 'forward') this.#forward(verdict.unknown, verdict.attempts);
    else if (verdict.kind !== 'gone') this.#reply.answer(problemOf(verdict), verdict.attempts);
    this.#over();
  }

  // — AttemptOwner: what becomes of a send —

  onHead(status: number, reasonPhrase: string, headers: string[]): void {
    this.#disarm();
    this.#held = { status, reasonPhrase, headers };
    const hints = readHints(status, headers, Date.now());
    this.drive.settled({ kind: 'response', status, hints, took: this.#context.clock.now() - this.#sentAt });
  }

  onFailure(reason: ErrorReason, sent: boolean): void {
    this.#disarm();
    this.drive.settled({ kind: 'error', reason, sent, took: this.#context.clock.now() - this.#sentAt });
  }

  onUnsendable(detail: string): void {
    this.#giveUp(fault(400, 'Bad request', `The request cannot be passed on: ${detail}.`, 'unsendable'));
  }

  /** An attempt that moves is not hung: its time counts from the last byte of the upload, a stream's from its last byte. */
  onProgress(): void {
    this.#timer?.refresh();
  }

  onEnd(broken: boolean): void {
    this.#disarm();
    this.drive.ended();
    if (broken) this.#reply.cut();
    else this.#reply.end();
  }

  onOver(): void {
    this.#arrival.route.target.load.end();
  }

  // — what happens to the client —

  /** The client has gone, or everything has been written. */
  readonly #onClose = (): void => {
    this.#closed = true;
    if (this.drive.isDone) {
      if (!this.#arrival.response.writableFinished && this.#verdict?.kind === 'forward') this.#cutForward();
      return this.#over();
    }
    if (this.#mayFinish()) this.#detached = true;
    else this.drive.gone();
  };

  /** A keyed write whose body is here is worth finishing when its route says so. */
  #mayFinish(): boolean {
    if (this.#arrival.route.plan.retry.onClientGone !== 'finish') return false;
    return this.#facts.keyed && this.#attempts > 0 && this.#body?.isUnread !== true;
  }

  #cutForward(): void {
    this.#disarm();
    this.#reply.cut();
    this.#attempt?.cancel();
    this.drive.ended();
  }

  readonly #onAttemptTimeout = (): void => {
    // What its client owes is no time of the upstream's: the body's own idle limit ends that.
    if (this.#body?.awaitsClient === true) return this.#arm(this.#timeout, this.#onAttemptTimeout);
    const sent = this.#attempt?.sent === true;
    this.#attempt?.cancel();
    // Without a connection in time: either none can be made, or all of ours are busy, which says nothing of the upstream.
    this.onFailure(sent || this.#foundPoolFull ? 'timeout' : 'connect', sent);
  };

  readonly #onWake = (): void => {
    this.drive.woke();
  };

  readonly #onStreamIdle = (): void => {
    this.#attempt?.cancel();
    this.onEnd(true);
  };

  /** The request itself is at fault: its client is told, and nothing is learned from it. */
  #giveUp(problem: ReturnType<typeof fault>): void {
    if (this.drive.isDone) return;
    this.#reply.answer(problem, this.#attempts);
    this.drive.gone();
  }

  #forward(unknown: boolean, attempts: number): void {
    const head = this.#held;
    this.#held = undefined;
    if (head === undefined || this.#closed) {
      this.#attempt?.discard();
      this.drive.ended();
    } else if (!this.#reply.forward(head, attempts, unknown)) {
      this.#attempt?.cancel();
      this.drive.ended();
    } else {
      this.#attempt?.forward(this.#arrival.response);
      if (isEventStream(head.headers)) this.drive.ended();
      else this.#arm(this.#arrival.route.target.streamIdle, this.#onStreamIdle);
    }
  }

  /** Once, when both the script and the client are through. */
  #over(): void {
    if (this.#verdict === undefined || !(this.#closed || this.#detached)) return;
    this.#body?.release();
    this.#arrival.response.off('close', this.#onClose);
    this.#onOver(this);
    const { queued, slept, wouldHave } = this.drive;
    const spent = { since: this.#since, attempts: this.#attempts, queued, slept, wouldHave };
    this.#context.listen({ type: 'done', record: this.#reply.record(this.#verdict, spent) });
  }

  #arm(ms: Millis, then: () => void): void {
    this.#timer = setTimeout(then, Math.ceil(ms));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** ServerResponse.getHeader does not know what writeHead was given as a list (Node 24). */
function isEventStream(headers: readonly string[]): boolean {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type');
  return at >= 0 && /^\s*text\/event-stream\s*(?:;|$)/i.test(headers[at + 1] ?? '');
}
