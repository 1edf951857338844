import type { Socket } from 'node:net';
import type { Random } from '../../core/scalars.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import { corsHeaders, preflightMethod } from '../headers/cors-headers.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { isBodyPending } from '../server/server-request.ts';
import { finalRecipientResponse } from '../headers/max-forwards.ts';
import { findUnresolvedOnArrival } from '../idempotency/unresolved-key-check.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { CountRequest } from '../server/request-source.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import type { CorsPreflights } from './cors-preflights.ts';
import type { Problem } from './problem.ts';
import { requestProblem, asUnknownOutcome } from './problem-details.ts';
import type { MapStatus } from '../server/write-problem.ts';
import { ASTERISK } from '../request/request-target.ts';
import { endResponse } from '../server/end-response.ts';
import { writeFinalRecipientResponse } from '../server/write-response.ts';
import { writeProblem, writeRawProblem } from '../server/write-problem.ts';
import { toRetryAfterSeconds } from '../headers/retry-after-header.ts';
import { traceparentOf } from '../headers/trace-context.ts';
import { NO_ROUTE, rejectionRecord } from './make-request-record.ts';

const MAX_FORWARDS_REACHED = requestProblem(
  200,
  'OK',
  'The request was not forwarded because Max-Forwards is 0.',
  'max_forwards',
);

export interface RejectionsOptions {
  readonly context: ProxyContext;
  readonly snapshot: () => Snapshot;
  /** A unique request id. */
  readonly nextId: () => string;
  readonly preflights: CorsPreflights;
  readonly count: CountRequest;
}

/** Responds to requests that never become an exchange, and records them. */
export class Rejections {
  readonly #options: RejectionsOptions;

  constructor(options: RejectionsOptions) {
    this.#options = options;
  }

  /** Rejects the request if there is a problem. Returns whether there was. A preflight gets its response, which costs no more. */
  rejectIf(request: HttpServerRequest, response: HttpServerResponse, problem: Problem | undefined): boolean {
    if (problem === undefined) return false;
    if (!this.#options.preflights.respondIfPreflight(request, response)) this.reject(request, response, problem);
    return true;
  }

  rejectExpectation(request: HttpServerRequest, response: HttpServerResponse): void {
    this.reject(
      request,
      response,
      requestProblem(417, 'Expectation failed', 'The only supported expectation is 100-continue.', 'expect'),
    );
  }

  /** Responds to a request with Max-Forwards 0 (RFC 9110 §7.6.2). @param identities headers that identify clients, in lower case */
  respondAsFinalRecipient(
    request: HttpServerRequest,
    response: HttpServerResponse,
    identities: ReadonlySet<string>,
  ): void {
    const { headers, body } = finalRecipientResponse(request, identities);
    this.#respond(
      request,
      response,
      MAX_FORWARDS_REACHED,
      (onDecided) => onDecided(MAX_FORWARDS_REACHED),
      (requestId) => {
        const { context, snapshot } = this.#options;
        const ending = context.isDraining() || isBodyPending(request) ? ['Connection', 'close'] : [];
        const options = { requestId, via: context.via, unread: snapshot().bodyIdleTimeout };
        const cors = this.#corsOf(request) ?? [];
        return writeFinalRecipientResponse(response, [...headers, ...cors, ...ending], body, options);
      },
    );
  }

  /**
   * @param isFramingInDoubt it is uncertain where the request ends: the connection is closed after the response
   * @param mapStatus changes status and headers of the response
   */
  reject(
    request: HttpServerRequest,
    response: HttpServerResponse,
    rejection: Problem,
    isFramingInDoubt = false,
    mapStatus?: MapStatus,
  ): void {
    const { context, snapshot } = this.#options;
    // A check is not the write itself, and an ingress would take a 5xx for a failed check. A client that has not proven who it is
    // learns nothing of writes, and causes no look-up.
    const decide = (onDecided: (problem: Problem) => void): void => {
      if (mapStatus !== undefined || rejection.challenge !== undefined) return onDecided(rejection);
      this.#decideOutcome(request, rejection, onDecided);
    };
    const { via, isDraining } = context;
    this.#respond(request, response, rejection, decide, (requestId, problem, retryAfterSeconds) => {
      const close = isDraining() || isFramingInDoubt || isBodyPending(request);
      const unread = snapshot().bodyIdleTimeout;
      const mappedStatus = mapStatus?.(problem, retryAfterSeconds);
      const cors = this.#corsOf(request);
      return writeProblem(response, request, problem, {
        requestId,
        via,
        retryAfterSeconds,
        attempts: 0,
        close,
        unread,
        mappedStatus,
        cors,
      });
    });
  }

  /**
   * Writes the response, and records the request when it has ended.
   * @param rejection recorded if the client disconnects before a decision
   * @param decide called once, after a short body has arrived
   * @param write returns the bytes of the body
   */
  #respond(
    request: HttpServerRequest,
    response: HttpServerResponse,
    rejection: Problem,
    decide: (onDecided: (problem: Problem) => void) => void,
    write: (requestId: string, problem: Problem, retryAfterSeconds: number | undefined) => number,
  ): void {
    const { context, count, snapshot, nextId } = this.#options;
    const { clock, listen, observer, random } = context;
    let problem = rejection;
    let retryAfterSeconds: number | undefined;
    const startedAt = clock.now();
    const id = nextId();
    let bytesOut = 0;
    const leave = count(request, rejection.reason === 'too_many_requests');
    listen({ type: 'arrived', route: NO_ROUTE });
    response.on('close', () => {
      leave();
      const path = redactedPath(request, snapshot().redactPath);
      const took = clock.now() - startedAt;
      const record = rejectionRecord(problem, {
        request,
        path,
        id,
        at: startedAt,
        retryAfterSeconds,
        took,
        bytesOut,
      });
      listen({ type: 'done', record });
      observer?.onRefused(record, traceparentOf(request));
    });
    const respond = (decided: Problem): void => {
      if (response.destroyed) return;
      problem = decided;
      retryAfterSeconds = retryAfterOf(problem, random);
      bytesOut = write(id, problem, retryAfterSeconds);
      endResponse(response, request);
    };
    // A short body arrives with the head and is parsed after it: then the connection can be kept.
    if (request.hasBody) setImmediate(decide, respond);
    else decide(respond);
  }

  /** CORS headers of the route that the request would have had; undefined if it has none. */
  #corsOf(request: HttpServerRequest): string[] | undefined {
    const { router } = this.#options.snapshot();
    if (!router.hasCors) return undefined;
    const { headers, path } = request;
    const method = preflightMethod(request) ?? request.verb;
    // If no route accepts the method, the route of the path decides.
    const cors = (router.find(method, headers.host, path) ?? router.find(undefined, headers.host, path))?.cors;
    return cors === undefined ? undefined : corsHeaders(cors, headers.origin);
  }

  /**
   * Responds to bytes that could not be parsed as a request.
   * @param request whose body they are, if its head could be parsed
   */
  rejectUnparsed(socket: Socket, rejection: Problem, request?: HttpServerRequest): void {
    if (request === undefined) return this.#respondUnparsed(socket, rejection);
    this.#decideOutcome(request, rejection, (problem) => this.#respondUnparsed(socket, problem));
  }

  /** The rejection, or an unknown outcome if an earlier request may have done the write. */
  #decideOutcome(request: HttpServerRequest, rejection: Problem, onDecided: (problem: Problem) => void): void {
    const { context, snapshot } = this.#options;
    findUnresolvedOnArrival(context, request, snapshot().router, (isUnresolved) =>
      onDecided(isUnresolved ? asUnknownOutcome(rejection, 'earlier_request') : rejection),
    );
  }

  #respondUnparsed(socket: Socket, problem: Problem): void {
    const { via, clock, listen, observer, random } = this.#options.context;
    const requestId = this.#options.nextId();
    const retryAfterSeconds = retryAfterOf(problem, random);
    const bytesOut = writeRawProblem(socket, problem, { requestId, via }, retryAfterSeconds);
    const record = rejectionRecord(problem, { id: requestId, at: clock.now(), took: 0, retryAfterSeconds, bytesOut });
    listen({ type: 'arrived', route: NO_ROUTE });
    listen({ type: 'done', record });
    observer?.onRefused(record, undefined);
  }
}

function retryAfterOf({ retryAfterMs }: Problem, random: Random): number | undefined {
  return retryAfterMs === undefined ? undefined : toRetryAfterSeconds(retryAfterMs, random);
}

/** The path for the log. Nothing of an absolute target is logged, because it may contain a password. */
function redactedPath(request: HttpServerRequest, redact: (path: string) => string): string {
  if (request.target === ASTERISK) return ASTERISK;
  return request.target.startsWith('/') ? redact(request.path) : '(absolute)';
}
