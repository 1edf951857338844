import { findRatePolicy } from '../headers/rate-limit-policy.ts';
import type { Duplex } from 'node:stream';
import type { ReaderAbortReason, RequestOutcome } from '../../core/events/event-labels.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { Millis } from '../../core/scalars.ts';
import { addCorsHeaders, corsHeaders } from '../headers/cors-headers.ts';
import { forwardInterimHeaders, forwardResponseHeaders, viaEntry } from '../headers/forward-headers.ts';
import { NO_RETRY_AFTER, retryAfterInfo, toRetryAfterSeconds } from '../headers/retry-after-header.ts';
import { withClientKey } from '../idempotency/upstream-key.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { abortResponse, closeIfUnread, endResponse } from '../server/end-response.ts';
import { isBodyPending } from '../server/server-request.ts';
import { openTunnel, type TunnelBytes } from '../server/tunnel.ts';
import { type MapStatus, writeProblem } from '../server/write-problem.ts';
import {
  MAX_INTERIM_RESPONSES,
  writeInterimResponse,
  writeOwnBody,
  writeResponseHead,
  writeSwitchingProtocols,
} from '../server/write-response.ts';
import { problemForVerdict } from './problem-details.ts';
import type { Problem } from './problem.ts';
import { type ExchangeTimings, requestOutcomeOf } from './make-request-record.ts';
import type { ResponseHead } from './response-head.ts';

/** Verdicts with a response of the upstream, in place of which the client has a problem if its head cannot be written. */
export const WITH_RESPONSE: ReadonlySet<ExchangeVerdict['kind']> = new Set(['forward', 'replay', 'share']);

/** The response to one client, and the record of what it received. */
export class ClientResponse {
  /** Bytes in both directions after a change of protocol; undefined if there was none. */
  tunnelBytes: TunnelBytes | undefined = undefined;
  /** Of the write that the request's idempotency key names; undefined if no key was claimed. */
  writeId: string | undefined = undefined;
  /** The derived key of the last attempt, or those of several lines; undefined if it had the client's own, or none. */
  upstreamKey: string | undefined = undefined;
  readonly #context: ExchangeContext;
  readonly #routed: RoutedRequest;
  #headAt: Millis | undefined;
  #problem: Problem | undefined;
  #retryAfter = NO_RETRY_AFTER;
  #isCut = false;
  #cutReason: ReaderAbortReason | undefined;
  #ownOutcome: 'checked' | 'accepted' | undefined;
  #interimLeft = MAX_INTERIM_RESPONSES;
  #ownBytes = 0;

  constructor(context: ExchangeContext, routed: RoutedRequest) {
    this.#context = context;
    this.#routed = routed;
  }

  /** Forwards an interim response, unless there were too many, or the client reads them too slowly. */
  forwardInterim(status: number, headers: readonly string[]): void {
    if (this.#interimLeft === 0) return;
    const shown = forwardInterimHeaders(withClientKey(headers, this.#routed, this));
    const takesMore = writeInterimResponse(this.#routed.response, status, shown);
    this.#interimLeft = takesMore ? this.#interimLeft - 1 : 0;
  }

  /**
   * Writes the upstream's response head.
   * @param unwritable the problem that the client gets if the head cannot be written to it
   * @returns false if it cannot
   */
  forward(head: ResponseHead, attempts: number, unknown: boolean, unwritable: 'fail' | 'unknown'): boolean {
    const { response, upgrade, requestId, xRequestId, key } = this.#routed;
    this.#headAt = this.#context.clock.now();
    this.#retryAfter = retryAfterInfo(head, Date.now);
    const headers = forwardResponseHeaders(withClientKey(head.headers, this.#routed, this), {
      via: viaEntry(head.httpVersion, this.#context.via),
      requestId,
      xRequestId,
      attempts,
      polls: head.polls,
      unknown,
      mintedKey: mintedKeyOf(key),
      close: this.#mustClose(),
    });
    if (head.addedHeaders !== undefined) headers.push(...head.addedHeaders);
    const { cors } = this.#routed.route;
    const clientHeaders =
      cors === undefined ? headers : addCorsHeaders(headers, cors, this.#routed.request.headers.origin);
    upgrade?.decline();
    if (writeResponseHead(response, head.status, head.reasonPhrase, clientHeaders)) return true;
    const verdict = { kind: unwritable, reason: 'reset', attempts, retryOutcome: undefined } as const;
    this.respondWith(problemForVerdict(verdict, { defect: 'unwritable' }), attempts);
    return false;
  }

  /** Sends a response that is whole already. @param unwritable see `forward`. @returns whether it is sent */
  sendWhole(head: ResponseHead, body: Buffer, unwritable: 'fail' | 'unknown'): boolean {
    if (this.#routed.response.destroyed || !this.forward(head, 0, false, unwritable)) return false;
    this.#ownBytes = body.length;
    this.end(body);
    this.#abortIfUnread(body.length);
    return true;
  }

  /** Aborts a response that is not read at the minimum rate. */
  #abortIfUnread(length: number): void {
    const { response, route, snapshot } = this.#routed;
    const { bodyIdleTimeout, minReadRate } = snapshot;
    const readTime = minReadRate === 0 ? 0 : (1000 * length) / minReadRate;
    closeIfUnread(response, bodyIdleTimeout + readTime, () => {
      this.#context.listen({ type: 'reader-cut', upstream: route.target.name, why: 'slow_reader' });
      this.abort('slow_reader');
    });
  }

  /** Agrees to change to another protocol, and connects client and upstream. @param onClosed called once both sides are closed */
  openTunnel(head: ResponseHead, attempts: number, upstream: Duplex, onClosed: () => void): void {
    const { upgrade, route, requestId, xRequestId } = this.#routed;
    if (upgrade === undefined) throw new Error('the client did not ask for a change of protocol');
    this.#headAt = this.#context.clock.now();
    const via = viaEntry(head.httpVersion, this.#context.via);
    const forwarding = { via, requestId, xRequestId, attempts, unknown: false, close: false };
    const headers = forwardResponseHeaders(withClientKey(head.headers, this.#routed, this), forwarding);
    const client = writeSwitchingProtocols(upgrade, headers);
    this.tunnelBytes = { toUpstream: 0, toClient: 0 };
    this.#context.listen({ type: 'upgraded', route: route.name });
    openTunnel(client, upstream, this.tunnelBytes, route.target.streamIdle, onClosed);
  }

  /** Responds with a problem document, unless a response has begun or the client has disconnected. */
  respondWith(problem: Problem, attempts: number, mapStatus?: MapStatus): void {
    const { response, requestId, request, route, snapshot, key, client } = this.#routed;
    if (response.headersSent || response.destroyed) return;
    this.#problem = problem;
    this.#headAt = this.#context.clock.now();
    if (problem.retryAfterMs !== undefined) {
      const retryAfterSeconds = toRetryAfterSeconds(problem.retryAfterMs, this.#context.random);
      this.#retryAfter = { retryAfterSeconds, from: 'tidegate' };
    }
    const { retryAfterSeconds } = this.#retryAfter;
    this.#ownBytes = writeProblem(response, request, problem, {
      requestId,
      via: this.#context.via,
      retryAfterSeconds,
      attempts,
      mintedKey: mintedKeyOf(key),
      close: this.#mustClose(),
      unread: snapshot.bodyIdleTimeout,
      ratePolicy: findRatePolicy(snapshot.ratePolicies, client),
      mappedStatus: mapStatus?.(problem, retryAfterSeconds),
      cors: route.cors === undefined ? undefined : corsHeaders(route.cors, request.headers.origin),
    });
    if (problem.status === 408) response.end();
    else endResponse(response, request);
  }

  /** Answers a check (the ingress may forward it) or a delivery (it is stored). @param headers names and values in turn */
  answer(outcome: 'checked' | 'accepted', status: number, headers: readonly string[], body = ''): void {
    const { response, request } = this.#routed;
    this.#headAt = this.#context.clock.now();
    this.#ownOutcome = outcome;
    const closing = this.#mustClose() ? ['Connection', 'close'] : [];
    this.#ownBytes = writeOwnBody(response, status, [...headers, ...closing], body);
    endResponse(response, request);
  }

  /** Ends the response: the forwarded body is complete. @param lastChunk still to be written */
  end(lastChunk: Buffer | undefined): void {
    endResponse(this.#routed.response, this.#routed.request, lastChunk);
  }

  /** Breaks off the response so that the client notices: the forwarded body is incomplete. */
  abort(why?: ReaderAbortReason): void {
    this.#isCut = true;
    this.#cutReason ??= why;
    abortResponse(this.#routed.response, this.#routed.request);
  }

  /** The record of the request, for log and metrics. */
  toRecord(verdict: ExchangeVerdict, timings: ExchangeTimings): RequestRecord {
    const { request, response, route, client, requestId, xRequestId, snapshot, key, fallback } = this.#routed;
    const now = this.#context.clock.now();
    return {
      id: requestId,
      at: timings.since,
      route: route.name,
      upstream: route.target.name,
      method: request.verb,
      path: snapshot.redactPath(request.path),
      client: client.hash,
      clientName: client.name,
      status: this.#headAt === undefined ? 0 : response.statusCode,
      outcome: this.#outcome(verdict),
      reason: this.#reason(verdict),
      attempts: timings.attempts,
      polls: verdict.polls,
      queueTime: timings.queued,
      sleepTime: timings.slept,
      timeToHead: (this.#headAt ?? now) - timings.since,
      took: now - timings.since,
      retryAfterSeconds: this.#retryAfter.retryAfterSeconds,
      retryAfterFrom: this.#retryAfter.from,
      isTruncated: this.#isCut,
      isAbandonedWrite: verdict.kind === 'gone' && verdict.unknown ? true : undefined,
      upgradeBytes: this.tunnelBytes,
      cause: timings.failure?.cause ?? this.#problem?.cause,
      wouldHave: timings.wouldHave,
      wouldRetry: verdict.wouldRetry,
      detail: this.#problem?.detail,
      retryOutcome: verdict.retryOutcome,
      mintedKey: mintedKeyOf(key),
      ...{ delivery: request.delivery, write: this.writeId, upstreamKey: this.upstreamKey },
      traceId: timings.traceId,
      spanId: timings.spanId,
      xRequestId: xRequestId === requestId ? undefined : xRequestId,
      fallbackFrom: fallback?.from,
      endpoint: timings.endpoint,
      bytesIn: timings.bytesIn,
      bytesOut: this.#ownBytes + timings.bytesForwarded,
    };
  }

  #outcome(verdict: ExchangeVerdict): RequestOutcome {
    if (this.#ownOutcome !== undefined) return this.#ownOutcome;
    if (WITH_RESPONSE.has(verdict.kind) && this.#problem !== undefined) {
      return this.#problem.unknown ? 'unknown' : 'upstream_error';
    }
    // The request itself was at fault, and its client has a response.
    if (verdict.kind === 'gone' && this.#problem !== undefined) return this.#problem.unknown ? 'unknown' : 'refused';
    return requestOutcomeOf(verdict, this.#routed.response.statusCode);
  }

  /** The connection ends with this response if the process shuts down, or the client may still be sending. */
  #mustClose(): boolean {
    const { request } = this.#routed;
    return this.#context.isDraining() || isBodyPending(request);
  }

  #reason(verdict: ExchangeVerdict): string | undefined {
    if (this.#problem !== undefined) return this.#problem.reason;
    if (this.#cutReason !== undefined) return this.#cutReason;
    if (verdict.kind === 'gone') return 'client_gone';
    return verdict.retryOutcome === 'success' ? undefined : verdict.retryOutcome;
  }
}

/** The idempotency key that Tidegate generated for the request, which its client learns from the response. */
function mintedKeyOf(key: RoutedRequest['key']): string | undefined {
  return key?.from === 'minted' ? key.value : undefined;
}
