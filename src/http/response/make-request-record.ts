/** The log record of a request, one for each way in which a request ends. */
import type { GateDecision } from '../../core/admission/gate-decision.ts';
import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { Millis } from '../../core/scalars.ts';
import { clientRequestIdOf } from '../headers/request-id.ts';
import { clientTraceOf } from '../headers/trace-context.ts';
import type { Route } from '../request/route.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { SendFailure } from '../upstream/send-failure.ts';
import type { Problem } from './problem.ts';

/** The route of a request that matches none, as metrics name it. */
export const NO_ROUTE = '(none)';

/** How long an exchange took, and where. */
export interface ExchangeTimings {
  readonly since: Millis;
  readonly attempts: number;
  readonly queued: Millis;
  readonly slept: Millis;
  /** In observe mode only. */
  readonly wouldHave: GateDecision | undefined;
  /** Of the last attempt, if it failed. */
  readonly failure: SendFailure | undefined;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  /** Of the last attempt. */
  readonly endpoint: string | undefined;
  /** Bytes read of the request body, and written of the upstream's response body. */
  readonly bytesIn: number;
  readonly bytesForwarded: number;
}

/** A request that never became an exchange. */
interface RejectedRequest {
  /** Undefined if it could not be parsed. */
  readonly request?: HttpServerRequest;
  /** Redacted. */
  readonly path?: string;
  readonly id: string;
  readonly at: Millis;
  readonly took: Millis;
  /** Whole seconds, as sent to the client. */
  readonly retryAfterSeconds?: number | undefined;
  /** Bytes of the response body. */
  readonly bytesOut: number;
}

/** Fields that are the same for everything that never was an exchange. */
const NO_EXCHANGE = {
  client: '',
  attempts: 0,
  queueTime: 0,
  sleepTime: 0,
  timeToHead: 0,
  isTruncated: false,
  bytesIn: 0,
} as const;

export function rejectionRecord(problem: Problem, rejected: RejectedRequest): RequestRecord {
  const { request, path = '', id, at, took, retryAfterSeconds, bytesOut } = rejected;
  return {
    ...NO_EXCHANGE,
    id,
    at,
    took,
    route: NO_ROUTE,
    upstream: '',
    method: request?.verb ?? '',
    path,
    status: problem.status,
    outcome: problem.unknown ? 'unknown' : 'refused',
    reason: problem.reason,
    cause: problem.cause,
    retryAfterSeconds,
    retryAfterFrom: retryAfterSeconds === undefined ? undefined : 'tidegate',
    detail: problem.detail,
    ...(request === undefined ? {} : clientIds(request)),
    bytesOut,
  };
}

export function preflightRecord(
  request: HttpServerRequest,
  route: Route,
  known: Pick<RequestRecord, 'id' | 'at' | 'path' | 'took'>,
): RequestRecord {
  return {
    ...NO_EXCHANGE,
    ...known,
    route: route.name,
    upstream: route.target.name,
    method: request.verb,
    status: 204,
    outcome: 'preflight',
    reason: undefined,
    retryAfterSeconds: undefined,
    ...clientIds(request),
    bytesOut: 0,
  };
}

/** The ids under which the client's side knows a request. */
function clientIds(request: HttpServerRequest): Pick<RequestRecord, 'traceId' | 'spanId' | 'xRequestId'> {
  return { ...clientTraceOf(request), xRequestId: clientRequestIdOf(request) };
}

/** @param status of the response */
export function requestOutcomeOf(verdict: ExchangeVerdict, status: number): RequestOutcome {
  switch (verdict.kind) {
    case 'forward':
      if (verdict.unknown) return 'unknown';
      return verdict.attempts > (verdict.polls ?? 1) && status < 400 ? 'recovered' : 'forwarded';
    case 'replay':
      return 'replayed';
    case 'share':
      return 'coalesced';
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
