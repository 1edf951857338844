import type { Duplex } from 'node:stream';
import type {
  CutReason,
  Decision,
  RequestOutcome,
  RequestRecord,
  RetryAfterSource,
} from '../../core/events/proxy-events.ts';
import type { Millis, Verdict } from '../../core/exchange/attempt-outcome.ts';
import { isSafe } from '../../core/exchange/attempt-outcome.ts';
import type { Arrival } from '../request/routed-request.ts';
import { factsOf } from '../request/routed-request.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { corsHeaders, withCors } from '../headers/cors-headers.ts';
import type { Failure } from '../upstream/send-failure.ts';
import { responseHeaders, viaOver } from '../headers/forward-headers.ts';
import { isComing } from '../server/server-request.ts';
import type { AnswerVersion } from '../undici/parser-patches.ts';
import type { Wrap } from '../server/write-response.ts';
import type { Problem } from './problem-details.ts';
import { problemOf } from './problem-details.ts';
import { saidIn, secondsOf } from '../headers/retry-after-header.ts';
import { breakOff, endAnswer, writeEmpty, writeHead, writeProblem, writeSwitch } from '../server/write-response.ts';
import type { Carried } from '../server/tunnel.ts';

/** The head of a response that is neither forwarded nor discarded yet. */
export interface Head {
  readonly status: number;
  readonly reasonPhrase: string;
  readonly headers: string[];
  readonly version: AnswerVersion;
  /** Of ours, behind those: what the upstream lists in Connection are its own. Absent where there is none. */
  readonly added?: readonly string[];
  /** In seconds, where a Retry-After of ours is among them. */
  readonly retryAfter?: number;
  /** How often it was asked for because it was not ready, where that was more than once. */
  readonly polls?: number | undefined;
}

/** How long an exchange took, and where. */
export interface Spent {
  readonly since: Millis;
  readonly attempts: number;
  readonly queued: Millis;
  readonly slept: Millis;
  /** Only where we observe. */
  readonly wouldHave: Decision | undefined;
  /** Only where the protocol was changed. */
  readonly carried: Carried | undefined;
  /** Of the last attempt, if it failed. */
  readonly failure: Failure | undefined;
  readonly traceId: string | undefined;
}

/** What the client gets, and what can be told of it afterwards. */
export class Reply {
  readonly #context: ExchangeContext;
  readonly #arrival: Arrival;
  #headAt: Millis | undefined;
  #problem: Problem | undefined;
  /** In seconds, and whose it is. */
  #retryAfter: number | undefined;
  #retryAfterFrom: RetryAfterSource | undefined;
  #cut = false;
  #cutReason: CutReason | undefined;
  #isChecked = false;

  constructor(context: ExchangeContext, arrival: Arrival) {
    this.#context = context;
    this.#arrival = arrival;
  }

  /** Writes the upstream's head. False: it cannot be passed on, and the client has been told so. */
  forward(head: Head, attempts: number, unknown: boolean): boolean {
    const { response, upgrade, requestId, xRequestId, key } = this.#arrival;
    this.#headAt = this.#context.clock.now();
    this.#note(head);
    const headers = responseHeaders(head.headers, {
      via: viaOver(head.version, this.#context.via),
      requestId,
      xRequestId,
      attempts,
      polls: head.polls,
      unknown,
      mintedKey: mintedOf(key),
      close: this.#mustClose(),
    });
    if (head.added !== undefined) headers.push(...head.added);
    const { cors } = this.#arrival.route;
    const told = cors === undefined ? headers : withCors(headers, cors, this.#arrival.request.headers.origin);
    upgrade?.decline();
    if (writeHead(response, head.status, head.reasonPhrase, told)) return true;
    const kind = isSafe(factsOf(this.#arrival)) ? 'fail' : 'unknown';
    this.answer(problemOf({ kind, reason: 'reset', attempts, retryEnd: undefined }, { flaw: 'unwritable' }), attempts);
    return false;
  }

  /** Agrees with the client to change to another protocol. @returns the connection, which is nobody else's now */
  switch(head: Head, attempts: number): Duplex {
    const { upgrade, requestId, xRequestId } = this.#arrival;
    if (upgrade === undefined) throw new Error('no change of protocol was asked for');
    this.#headAt = this.#context.clock.now();
    const via = viaOver(head.version, this.#context.via);
    const told = { via, requestId, xRequestId, attempts, unknown: false, close: false };
    return writeSwitch(upgrade, responseHeaders(head.headers, told));
  }

  /** Writes an answer of our own, unless something has been written, or nobody is there. */
  answer(problem: Problem, attempts: number, wrap?: Wrap): void {
    const { response, requestId, request, route, snapshot, key } = this.#arrival;
    if (response.headersSent || response.destroyed) return;
    this.#problem = problem;
    this.#headAt = this.#context.clock.now();
    if (problem.retryAfter !== undefined) {
      this.#retryAfter = secondsOf(problem.retryAfter, this.#context.random);
      this.#retryAfterFrom = 'tidegate';
    }
    const { via } = this.#context;
    writeProblem(response, problem, {
      requestId,
      via,
      retryAfter: this.#retryAfter,
      attempts,
      mintedKey: mintedOf(key),
      close: this.#mustClose(),
      unread: snapshot.bodyIdle,
      wrapping: wrap?.(problem, this.#retryAfter),
      cors: route.cors === undefined ? undefined : corsHeaders(route.cors, request.headers.origin),
    });
    if (problem.status === 408) response.end();
    else endAnswer(response, request);
  }

  /** Says that the request may pass, which whoever asked sends. @param headers names and values in turn */
  letPass(headers: readonly string[]): void {
    const { response, request } = this.#arrival;
    this.#headAt = this.#context.clock.now();
    this.#isChecked = true;
    writeEmpty(response, 200, this.#mustClose() ? [...headers, 'Connection', 'close'] : headers);
    endAnswer(response, request);
  }

  /** The forwarded body has come to its end. @param rest of it that is still to be written */
  end(rest: Buffer | undefined): void {
    endAnswer(this.#arrival.response, this.#arrival.request, rest);
  }

  /** The forwarded body broke off: the client must see that. */
  cut(why?: CutReason): void {
    this.#cut = true;
    this.#cutReason ??= why;
    breakOff(this.#arrival.response, this.#arrival.request);
  }

  /** The line that the log gets. */
  record(verdict: Verdict, spent: Spent): RequestRecord {
    const { request, response, route, client, requestId, snapshot, key } = this.#arrival;
    const now = this.#context.clock.now();
    return {
      id: requestId,
      at: spent.since,
      route: route.name,
      upstream: route.target.name,
      method: request.verb,
      path: snapshot.tellPath(request.path),
      client: client.hash,
      clientName: client.name,
      status: this.#headAt === undefined ? 0 : response.statusCode,
      outcome: this.#outcome(verdict),
      reason: this.#reason(verdict),
      attempts: spent.attempts,
      polls: verdict.polls,
      queued: spent.queued,
      slept: spent.slept,
      toHead: (this.#headAt ?? now) - spent.since,
      took: now - spent.since,
      retryAfter: this.#retryAfter,
      retryAfterFrom: this.#retryAfterFrom,
      cut: this.#cut,
      carried: spent.carried,
      cause: spent.failure?.cause,
      wouldHave: spent.wouldHave,
      wouldRetry: verdict.wouldRetry,
      detail: this.#problem?.detail,
      retryEnd: verdict.retryEnd,
      mintedKey: mintedOf(key),
      traceId: spent.traceId,
    };
  }

  #note(head: Head): void {
    const { retryAfter, from } = saidIn(head, Date.now);
    this.#retryAfter = retryAfter;
    this.#retryAfterFrom = from;
  }

  #outcome(verdict: Verdict): RequestOutcome {
    if (this.#isChecked) return 'checked';
    if (verdict.kind === 'forward' && this.#problem !== undefined) {
      return this.#problem.unknown ? 'unknown' : 'upstream_error';
    }
    // Given up because of the request itself, and told so: its client is still there.
    if (verdict.kind === 'gone' && this.#problem !== undefined) return this.#problem.unknown ? 'unknown' : 'refused';
    return outcomeOf(verdict, this.#arrival.response.statusCode);
  }

  /** The connection ends with this answer when we go away, or when the client may still be sending. */
  #mustClose(): boolean {
    const { request } = this.#arrival;
    return this.#context.isDraining() || isComing(request);
  }

  #reason(verdict: Verdict): string | undefined {
    if (this.#problem !== undefined) return this.#problem.reason;
    if (this.#cutReason !== undefined) return this.#cutReason;
    if (verdict.kind === 'gone') return 'client_gone';
    return verdict.retryEnd === 'success' ? undefined : verdict.retryEnd;
  }
}

/** Its client is told of a key that it has not chosen. */
function mintedOf(key: Arrival['key']): string | undefined {
  return key?.from === 'minted' ? key.value : undefined;
}

function outcomeOf(verdict: Verdict, status: number): RequestOutcome {
  switch (verdict.kind) {
    case 'forward':
      if (verdict.unknown) return 'unknown';
      return verdict.attempts > (verdict.polls ?? 1) && status < 400 ? 'recovered' : 'forwarded';
    case 'refuse':
      return verdict.why === 'queue_timeout' ? 'queue_timeout' : 'refused';
    case 'fail':
      return verdict.reason === 'too_many_files' ? 'refused' : 'upstream_error';
    case 'unknown':
      return 'unknown';
    case 'gone':
      return 'client_gone';
  }
}
