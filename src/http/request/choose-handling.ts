import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import { type CorsPolicy, preflightMethod } from '../headers/cors-headers.ts';
import { isLoop } from '../headers/forward-headers.ts';
import { readMaxForwards } from '../headers/max-forwards.ts';
import { NO_ROUTE_PROBLEM, repeatedHeaderProblem, requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { findDisguisedPath } from '../auth/disguised-path.ts';
import type { Route } from './route.ts';
import { rewriteTarget, type Router } from './router.ts';
import { findRepeatedHeader } from './validate-request.ts';

/** How a valid request is handled. */
export type RequestHandling =
  | { readonly kind: 'rejected'; readonly problem: Problem }
  /** A CORS preflight whose route answers preflights itself. */
  | { readonly kind: 'preflight'; readonly route: Route; readonly cors: CorsPolicy }
  /** Max-Forwards is 0 (RFC 9110 §7.6.2). */
  | { readonly kind: 'final-recipient'; readonly route: Route }
  /** @param isPreflight a CORS preflight that the upstream answers: no limit applies */
  | { readonly kind: 'exchange'; readonly route: Route; readonly isPreflight: boolean };

/** @param via `1.1 tidegate-<instance>`: a request that has it has passed this process before */
export function chooseHandling(request: HttpServerRequest, router: Router, via: string): RequestHandling {
  if (isLoop(request.headers.via, via)) return { kind: 'rejected', problem: LOOP };
  const { host } = request.headers;
  const requestedMethod = preflightMethod(request);
  const isPreflight = requestedMethod !== undefined;
  const route = isPreflight
    ? router.findPreflight(requestedMethod, host, request.path)
    : router.find(request.verb, host, request.path);
  if (route === undefined) return { kind: 'rejected', problem: NO_ROUTE_PROBLEM };
  if (isPreflight && route.cors !== undefined) return { kind: 'preflight', route, cors: route.cors };
  if (readMaxForwards(request) === 0) return { kind: 'final-recipient', route };
  const problem =
    findRepeatedIdentity(request, route) ??
    (isTraceWithCredential(request, route) ? TRACE_REFUSED : undefined) ??
    findAmbiguousTarget(request, route) ??
    findDisguisedPath(request, route, router);
  return problem === undefined ? { kind: 'exchange', route, isPreflight } : { kind: 'rejected', problem };
}

/** Servers differ in which of two equal headers they use, so the client or the account of the key is ambiguous. */
function findRepeatedIdentity(request: HttpServerRequest, { target }: Route): Problem | undefined {
  const repeated =
    findRepeatedHeader(request, target.identityHeaders) ??
    (isSafeMethod(request.verb) ? undefined : findRepeatedHeader(request, target.idempotency.accountHeaders));
  return repeated === undefined ? undefined : repeatedHeaderProblem(repeated);
}

/** The response to a TRACE is the request as the upstream received it (RFC 9110 §9.3.8), with the credential of an account. */
export function isTraceWithCredential({ verb }: Pick<HttpServerRequest, 'verb'>, { target }: Route): boolean {
  return verb === 'TRACE' && target.accounts !== undefined;
}

/** `rewritePrefix: /` turns `/v1//x` into `//x`, which many servers read as a host name. */
function findAmbiguousTarget(request: HttpServerRequest, route: Route): Problem | undefined {
  const isAmbiguous = route.rewritePrefix !== undefined && rewriteTarget(request.target, route).startsWith('//');
  return isAmbiguous ? LEADING_DOUBLE_SLASH : undefined;
}

const LOOP = requestProblem(
  508,
  'Loop detected',
  'This request has already passed through this proxy. Check that no upstream leads back here.',
  'loop',
);

const TRACE_REFUSED = requestProblem(
  405,
  'Method not allowed',
  'A TRACE would return the credential that is sent to this upstream. Send Max-Forwards: 0 to trace the request up to this proxy.',
  'method',
);

const LEADING_DOUBLE_SLASH = requestProblem(
  400,
  'Bad request',
  'The path would start with two slashes at the upstream. Remove the extra slash.',
  'bad_request',
);
