import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Drive } from '../drive.ts';
import type { Effects } from '../drive.ts';
import { exchange } from '../exchange.ts';
import type { RequestOutcome } from '../policy/events.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import { formatRetryAfter, readHints } from '../policy/hints.ts';
import { Ticket } from '../policy/ticket.ts';
import type { ErrorReason, Millis, Verdict } from '../policy/types.ts';
import type { AttemptOwner } from './attempt.ts';
import { Attempt } from './attempt.ts';
import { RequestBody } from './body.ts';
import { requestHeaders, responseHeaders } from './headers.ts';
import type { Client } from './identity.ts';
import type { Inbound } from './inbound.ts';
import type { Route, Snapshot } from './plan.ts';
import type { Problem } from './problem.ts';
import { fault, problemOf } from './problem.ts';
import type { ProxyContext } from './context.ts';
import { endAnswer, writeHead, writeProblem } from './respond.ts';
import { rewriteTarget } from './router.ts';

/** The head of a response that is neither forwarded nor discarded yet. */
interface Held {
  readonly status: number;
  readonly reasonPhrase: string;
  readonly headers: string[];
}

export interface Arrived {
  readonly request: Inbound;
  readonly response: ServerResponse;
  readonly route: Route;
  readonly snapshot: Snapshot;
  readonly client: Client;
  readonly peer: string;
  readonly requestId: string;
  /** The client's own id for the request, or ours. */
  readonly xRequestId: string;
}

/** The proxy's interpreter of one exchange: sockets and one timer. What happens, and when, the script and the gate say. */
export class Life implements Effects, AttemptOwner {
  readonly #context: ProxyContext;
  readonly #arrived: Arrived;
  readonly #drive: Drive;
  readonly #keyed: boolean;
  readonly #since: Millis;
  #body: RequestBody | undefined;
  #attempt: Attempt | undefined;
  #attempts = 0;
  #sentAt: Millis = 0;
  #held: Held | undefined;
  /** One timer for whatever is waited for: an attempt, a sleep, a silent stream. */
  #timer: NodeJS.Timeout | undefined;
  #headers: string[] | undefined;
  #detached = false;
  #closed = false;
  #headAt: Millis | undefined;
  #verdict: Verdict | undefined;
  #problem: Problem | undefined;
  #retryAfter: number | undefined;
  #cut = false;

  constructor(context: ProxyContext, arrived: Arrived) {
    this.#context = context;
    this.#arrived = arrived;
    const { request, route, client } = arrived;
    const { target } = route;
    this.#since = context.clock.now();
    this.#keyed = (request.headers[target.idempotencyHeader] ?? '') !== '';
    const plan = (client.className === undefined ? undefined : route.planOfClass.get(client.className)) ?? route.plan;
    const facts = {
      method: request.verb,
      keyed: this.#keyed,
      expectsContinue: request.expectsContinue,
      priorAttempts: priorAttempts(arrived),
    };
    this.#drive = new Drive({
      script: exchange(facts, plan, context.random, this.#since),
      gate: context.gate,
      ticket: new Ticket(target.name, client.hash, client.weight, [this.#limitRef()], (admission, now) => {
        this.#drive.settle(admission, now);
      }),
      effects: this,
      clock: context.clock,
      listen: context.listen,
    });
  }

  get drive(): Drive {
    return this.#drive;
  }

  /** Its request has been read, or is being sent: what is written to this connection now, its client takes for the answer. */
  awaitsAnswerOn(socket: Duplex): boolean {
    return this.#arrived.request.socket === socket && this.#body?.isBeingRead !== true;
  }

  start(): void {
    const { response, route } = this.#arrived;
    this.#context.listen({ type: 'arrived', route: route.name });
    response.on('close', this.#onClose);
    this.#drive.start();
  }

  // — Effects: what the script asks for —

  readBody(): void {
    const { request, response, route, snapshot } = this.#arrived;
    if (!request.hasBody) return this.#drive.bodyRead(true);
    this.#body = new RequestBody(request, {
      limit: route.replayLimit,
      memory: this.#context.replayMemory,
      idle: snapshot.bodyIdle,
      onRead: (replayable) => this.#drive.bodyRead(replayable),
      onIdle: () => this.#tooSlow(),
    });
    if (request.expectsContinue) response.writeContinue();
    request.expectsContinue = false;
    this.#body.read();
  }

  send(attempt: number, timeout: Millis): void {
    const { request, route } = this.#arrived;
    const { target } = route;
    this.#attempts = attempt;
    this.#sentAt = this.#context.clock.now();
    this.#attempt = new Attempt(this);
    this.#timer = setTimeout(this.#onAttemptTimeout, Math.ceil(timeout));
    this.#headers ??= this.#requestHeaders();
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
    clearTimeout(this.#timer);
    this.#attempt?.cancel();
  }

  discard(): void {
    this.#held = undefined;
    this.#attempt?.discard();
  }

  sleep(ms: Millis): void {
    this.#timer = setTimeout(this.#onWake, Math.ceil(ms));
  }

  cancelSleep(): void {
    clearTimeout(this.#timer);
  }

  rearm(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: Verdict): void {
    this.#verdict = verdict;
    clearTimeout(this.#timer);
    if (verdict.kind === 'forward') return this.#forward(verdict.unknown, verdict.attempts);
    if (verdict.kind !== 'gone' && !this.#closed) this.#answer(problemOf(verdict));
    this.#over();
  }

  // — AttemptOwner: what becomes of a send —

  onHead(status: number, reasonPhrase: string, headers: string[]): void {
    clearTimeout(this.#timer);
    this.#held = { status, reasonPhrase, headers };
    const hints = readHints(status, headers, Date.now());
    this.#drive.settled({ kind: 'response', status, hints, took: this.#context.clock.now() - this.#sentAt });
  }

  onFailure(reason: ErrorReason, sent: boolean): void {
    clearTimeout(this.#timer);
    this.#drive.settled({ kind: 'error', reason, sent, took: this.#context.clock.now() - this.#sentAt });
  }

  /** An attempt that moves is not hung: its time counts from the last byte of the upload, a stream's from its last byte. */
  onProgress(): void {
    this.#timer?.refresh();
  }

  onEnd(broken: boolean): void {
    const { response, request } = this.#arrived;
    clearTimeout(this.#timer);
    this.#drive.ended();
    if (!broken) return endAnswer(response, request);
    this.#cut = true;
    response.destroy();
  }

  // — what happens to the client —

  /** The client has gone, or everything has been written. */
  readonly #onClose = (): void => {
    this.#closed = true;
    const finished = this.#arrived.response.writableFinished;
    if (this.#drive.isDone) {
      if (!finished && this.#verdict?.kind === 'forward') this.#cutForward();
      this.#over();
      return;
    }
    if (this.#mayFinish()) {
      this.#detached = true;
      return;
    }
    this.#drive.gone();
  };

  /** A keyed write whose body is here is worth finishing when its route says so. */
  #mayFinish(): boolean {
    const { route } = this.#arrived;
    if (route.plan.retry.onClientGone !== 'finish' || !this.#keyed || this.#attempts === 0) return false;
    return this.#body === undefined || !this.#body.isUnread;
  }

  #cutForward(): void {
    clearTimeout(this.#timer);
    this.#cut = true;
    this.#attempt?.cancel();
    this.#drive.ended();
  }

  readonly #onAttemptTimeout = (): void => {
    const sent = this.#attempt?.sent === true;
    this.#attempt?.cancel();
    this.onFailure(sent ? 'timeout' : 'connect', sent);
  };

  readonly #onWake = (): void => {
    this.#drive.woke();
  };

  readonly #onStreamIdle = (): void => {
    this.#attempt?.cancel();
    this.onEnd(true);
  };

  /** The client paused within its body for too long: it is told, and the connection ends, for its rest is unread. */
  #tooSlow(): void {
    if (this.#drive.isDone) return;
    this.#answer(fault(408, 'Request body too slow', 'The body paused for too long.', 'body_idle'));
    this.#drive.gone();
  }

  #forward(unknown: boolean, attempts: number): void {
    const { response, requestId, xRequestId, route } = this.#arrived;
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined || this.#detached || this.#closed) {
      this.#attempt?.discard();
      this.#drive.ended();
      return this.#over();
    }
    const close = this.#context.isDraining() || this.#body?.isUnread === true;
    const answered = { via: this.#context.via, requestId, xRequestId, attempts, unknown, close };
    this.#headAt = this.#context.clock.now();
    if (!writeHead(response, held.status, held.reasonPhrase, responseHeaders(held.headers, answered))) {
      this.#attempt?.cancel();
      this.#drive.ended();
      this.#answer(fault(502, 'Unwritable answer', 'The upstream sent headers that cannot be passed on.', 'bad_head'));
      return;
    }
    this.#attempt?.forward(response);
    if (isEventStream(held.headers)) this.#drive.ended();
    else this.#timer = setTimeout(this.#onStreamIdle, route.target.streamIdle);
  }

  #answer(problem: Problem): void {
    const { response, requestId, request } = this.#arrived;
    if (response.headersSent || response.destroyed) return;
    this.#problem = problem;
    this.#headAt = this.#context.clock.now();
    if (problem.retryAfter !== undefined) {
      this.#retryAfter = Number(formatRetryAfter(problem.retryAfter, this.#context.random));
    }
    const close = this.#context.isDraining() || (request.hasBody && !request.readableEnded);
    const { via } = this.#context;
    writeProblem(response, problem, { requestId, via, retryAfter: this.#retryAfter, attempts: this.#attempts, close });
    if (problem.status === 408) response.end();
    else endAnswer(response, request);
  }

  /** Once, when both the script and the client are through. */
  #over(): void {
    if (this.#verdict === undefined || !(this.#closed || this.#detached)) return;
    this.#body?.release();
    this.#arrived.response.off('close', this.#onClose);
    this.#context.forget(this);
    this.#tellDone(this.#verdict);
  }

  #tellDone(verdict: Verdict): void {
    const { request, response, route, client, requestId } = this.#arrived;
    const now = this.#context.clock.now();
    this.#context.listen({
      type: 'done',
      record: {
        id: requestId,
        route: route.name,
        upstream: route.target.name,
        method: request.verb,
        path: request.path,
        client: client.hash,
        status: this.#headAt === undefined ? 0 : response.statusCode,
        outcome: outcomeOf(verdict, response.statusCode),
        reason: this.#reason(verdict),
        attempts: this.#attempts,
        queued: this.#drive.queued,
        slept: this.#drive.slept,
        toHead: (this.#headAt ?? now) - this.#since,
        took: now - this.#since,
        retryAfter: this.#retryAfter,
        cut: this.#cut,
      },
    });
  }

  #reason(verdict: Verdict): string | undefined {
    if (this.#problem !== undefined) return this.#problem.reason;
    if (verdict.kind === 'gone') return 'client_gone';
    return verdict.retryEnd === 'success' ? undefined : verdict.retryEnd;
  }

  #limitRef(): LimitRef {
    const { request, route, client } = this.#arrived;
    const { name, scope, credentialHeader } = route.target;
    if (scope === 'upstream') return { upstream: name, scope, key: '' };
    if (scope === 'client') return { upstream: name, scope, key: client.hash };
    return { upstream: name, scope, key: this.#context.hash(String(request.headers[credentialHeader] ?? '')) };
  }

  #requestHeaders(): string[] {
    const { request, peer, xRequestId, route, snapshot } = this.#arrived;
    const { target } = route;
    return requestHeaders(request.rawHeaders, {
      via: this.#context.via,
      requestId: xRequestId,
      peer,
      peerIsTrusted: snapshot.trusts(peer),
      proto: 'http',
      forwarded: snapshot.forwarded,
      host: target.preserveHost ? (request.headers.host ?? target.authority) : target.authority,
    });
  }
}

/** Envoy counts from 1. Only a proxy of ours in front is believed. */
function priorAttempts({ request, snapshot, peer }: Arrived): number {
  const count = request.headers['x-envoy-attempt-count'];
  return count !== undefined && snapshot.trusts(peer) ? Math.max(0, Number.parseInt(String(count), 10) - 1 || 0) : 0;
}

/** ServerResponse.getHeader does not know what writeHead was given as a list (Node 24). */
function isEventStream(headers: readonly string[]): boolean {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type');
  return at >= 0 && /^\s*text\/event-stream\s*(?:;|$)/i.test(headers[at + 1] ?? '');
}

function outcomeOf(verdict: Verdict, status: number): RequestOutcome {
  switch (verdict.kind) {
    case 'forward':
      if (verdict.unknown) return 'unknown';
      return verdict.attempts > 1 && status < 400 ? 'recovered' : 'forwarded';
    case 'refuse':
      return verdict.why === 'queue_timeout' ? 'queue_timeout' : 'refused';
    case 'fail':
      return 'upstream_error';
    case 'unknown':
      return 'unknown';
    case 'gone':
      return 'client_gone';
  }
}
