import type { Socket } from 'node:net';
import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Capacity } from '../overload/request-capacity.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import { corsHeaders, preflightMethod } from '../headers/cors-headers.ts';
import type { Inbound } from '../server/server-request.ts';
import { isComing } from '../server/server-request.ts';
import { answerAsLast } from '../headers/max-forwards.ts';
import { isOpenOnArrival } from '../idempotency/unresolved-key-check.ts';
import type { Outbound } from '../server/server-response.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import type { Preflights } from './cors-preflights.ts';
import type { Problem } from './problem-details.ts';
import { fault, unknownFor } from './problem-details.ts';
import type { Wrap } from '../server/write-response.ts';
import { ASTERISK } from '../request/request-target.ts';
import { endAnswer, writeFinal, writeProblem, writeRawProblem } from '../server/write-response.ts';
import { secondsOf } from '../headers/retry-after-header.ts';
import { traceIdOf, traceparentOf } from '../headers/trace-context.ts';

/** What metrics call the route of a request that has none. */
const NO_ROUTE = '(none)';

const FORWARDED_ENOUGH = fault(200, 'OK', 'Max-Forwards lets the request go no further.', 'max_forwards');

export interface RefusalsOptions {
  readonly context: ProxyContext;
  readonly capacity: Capacity;
  readonly snapshot: () => Snapshot;
  /** Of requests: unique. */
  readonly nextId: () => string;
  readonly preflights: Preflights;
}

/** Answers to what never becomes an exchange. They are told of all the same. */
export class Refusals {
  readonly #options: RefusalsOptions;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  /** Returns whether there is a reason to. A preflight that is answered here is: to refuse it would cost as much. */
  turnAway(request: Inbound, response: Outbound, problem: Problem | undefined): boolean {
    if (problem === undefined) return false;
    if (!this.#options.preflights.take(request, response)) this.refuse(request, response, problem);
    return true;
  }

  refuseExpectation(request: Inbound, response: Outbound): void {
    this.refuse(request, response, fault(417, 'Expectation failed', 'Only 100-continue is understood.', 'expect'));
  }

  /** Answers a request that may be forwarded no further (RFC 9110 §7.6.2). @param identities headers that say who asks, in lower case */
  answerAsLast(request: Inbound, response: Outbound, identities: ReadonlySet<string>): void {
    const { headers, body } = answerAsLast(request, identities);
    this.#conclude(
      request,
      response,
      () => FORWARDED_ENOUGH,
      (requestId) => {
        const { context, snapshot } = this.#options;
        const ending = context.isDraining() || isComing(request) ? ['Connection', 'close'] : [];
        const told = { requestId, via: context.via, unread: snapshot().bodyIdle };
        const cors = this.#corsOf(request) ?? [];
        writeFinal(response, [...headers, ...cors, ...ending], body, told);
      },
    );
  }

  /**
   * @param isUnframed where the request ends is a matter of opinion: nothing behind it is read
   * @param wrap how its answer goes out; as it is unless given
   */
  refuse(request: Inbound, response: Outbound, refused: Problem, isUnframed = false, wrap?: Wrap): void {
    const { context, snapshot } = this.#options;
    // Of a check it is not the write that is refused, and its 5xx would be taken for a check that failed.
    const decide = (): Problem => {
      const isOpen = wrap === undefined && isOpenOnArrival(context.keys, request, snapshot().router);
      return isOpen ? unknownFor(refused) : refused;
    };
    const { via, isDraining } = context;
    this.#conclude(request, response, decide, (requestId, problem, retryAfter) => {
      const close = isDraining() || isUnframed || isComing(request);
      const unread = snapshot().bodyIdle;
      const wrapping = wrap?.(problem, retryAfter);
      const cors = this.#corsOf(request);
      writeProblem(response, problem, { requestId, via, retryAfter, attempts: 0, close, unread, wrapping, cors });
    });
  }

  /**
   * Writes its only answer, and tells of it when that has ended.
   * @param decide asked once, when a short body has come
   * @param write `retryAfter` is in seconds, as it is told
   */
  #conclude(
    request: Inbound,
    response: Outbound,
    decide: () => Problem,
    write: (requestId: string, problem: Problem, retryAfter: number | undefined) => void,
  ): void {
    const { context, capacity, snapshot, nextId } = this.#options;
    const { clock, listen, watcher, random } = context;
    let decided: { readonly problem: Problem; readonly retryAfter: number | undefined } | undefined;
    const decision = (): NonNullable<typeof decided> => {
      if (decided !== undefined) return decided;
      const problem = decide();
      const retryAfter = problem.retryAfter === undefined ? undefined : secondsOf(problem.retryAfter, random);
      decided = { problem, retryAfter };
      return decided;
    };
    const since = clock.now();
    const id = nextId();
    capacity.countLeaving(response);
    listen({ type: 'arrived', route: NO_ROUTE });
    response.on('close', () => {
      const path = pathOf(request, snapshot().tellPath);
      const took = clock.now() - since;
      const { problem, retryAfter } = decision();
      const record = recordRefused(problem, { request, path, id, at: since, retryAfter, took });
      listen({ type: 'done', record });
      watcher?.refused(record, traceparentOf(request));
    });
    const answer = (): void => {
      if (response.destroyed) return;
      const { problem, retryAfter } = decision();
      write(id, problem, retryAfter);
      endAnswer(response, request);
    };
    // A short body has come with the head, and is parsed behind it: then the connection can go on.
    if (request.hasBody) setImmediate(answer);
    else answer();
  }

  /** What the route says that it would have had. A request that is at fault may have none. */
  #corsOf(request: Inbound): string[] | undefined {
    const { router } = this.#options.snapshot();
    if (!router.hasCors) return undefined;
    const { headers, path } = request;
    const method = preflightMethod(request) ?? request.verb;
    // If no route takes this method, the route of the path decides.
    const cors = (router.find(method, headers.host, path) ?? router.find(undefined, headers.host, path))?.cors;
    return cors === undefined ? undefined : corsHeaders(cors, headers.origin);
  }

  /**
   * Answers bytes that never became a request. Only their connection is known.
   * @param request whose body they are, if its head could be read
   */
  refuseUnread(socket: Socket, refused: Problem, request?: Inbound): void {
    const { via, clock, listen, watcher, random, keys } = this.#options.context;
    const isOpen = request !== undefined && isOpenOnArrival(keys, request, this.#options.snapshot().router);
    const problem = isOpen ? unknownFor(refused) : refused;
    const requestId = this.#options.nextId();
    const retryAfter = problem.retryAfter === undefined ? undefined : secondsOf(problem.retryAfter, random);
    const record = recordRefused(problem, { id: requestId, at: clock.now(), took: 0, retryAfter });
    listen({ type: 'arrived', route: NO_ROUTE });
    listen({ type: 'done', record });
    watcher?.refused(record, undefined);
    writeRawProblem(socket, problem, { requestId, via }, retryAfter);
  }
}

interface Refused {
  readonly request?: Inbound;
  /** As it may be told. */
  readonly path?: string;
  readonly id: string;
  readonly at: Millis;
  readonly took: Millis;
  /** In seconds, as it was told. */
  readonly retryAfter?: number | undefined;
}

/** What the log gets of a request that never became an exchange. Of one that could not be read nothing is known. */
function recordRefused(problem: Problem, told: Refused): RequestRecord {
  const { request, path, id, at, took, retryAfter } = told;
  return {
    id,
    at,
    route: NO_ROUTE,
    upstream: '',
    method: request?.verb ?? '',
    path: path ?? '',
    client: '',
    status: problem.status,
    outcome: problem.unknown ? 'unknown' : 'refused',
    reason: problem.reason,
    cause: problem.cause,
    attempts: 0,
    queued: 0,
    slept: 0,
    toHead: 0,
    took,
    retryAfter,
    retryAfterFrom: retryAfter === undefined ? undefined : 'tidegate',
    cut: false,
    detail: problem.detail,
    traceId: request === undefined ? undefined : traceIdOf(traceparentOf(request)),
  };
}

/** Of another origin nothing is kept: it may carry a password. */
function pathOf(request: Inbound, tell: (path: string) => string): string {
  if (request.target === ASTERISK) return ASTERISK;
  return request.target.startsWith('/') ? tell(request.path) : '(absolute)';
}
