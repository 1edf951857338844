import type { Millis } from '../../core/scalars.ts';
import type { Principal } from '../auth/auth-types.ts';
import type { Route } from '../request/route.ts';
import { socketAddress } from '../request/client-address.ts';
import { identifyRequest } from '../request/routed-request.ts';
import { preflightMethod } from '../headers/cors-headers.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { findInvalidRequest, findRepeatedHeader } from '../request/validate-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { ExtAuthzSettings } from '../request/snapshot-types.ts';
import { NO_ROUTE_PROBLEM, repeatedHeaderProblem, requestProblem } from '../response/problem-details.ts';
import { endResponse } from '../server/end-response.ts';
import { writeEmpty } from '../server/write-response.ts';
import { CheckHandler } from './check-handler.ts';
import type { CheckRouter } from './check-router.ts';
import { allowHeadersFor, statusMappingFor } from './ingress-dialect.ts';
import { type CheckOptions, parseCheckOptions } from './check-options.ts';
import { UNCOUNTED_PERMIT } from './check-permit.ts';
import type { DescribedChecks, ExtAuthzApiOptions, ExtAuthzExchange, RouteChoice } from './ext-authz-options.ts';
import { ReportEndpoint } from './report-endpoint.ts';
import { assumeRequest, findCheckedRequest } from './checked-request.ts';

/** The check API of ingresses: answers checks, and takes reports of responses. */
export class ExtAuthzApi implements DescribedChecks {
  readonly #options: ExtAuthzApiOptions;
  readonly #reports: ReportEndpoint;

  constructor(options: ExtAuthzApiOptions) {
    this.#options = options;
    this.#reports = new ReportEndpoint(options);
  }

  /** Handles a check or a report. Returns false if the request is neither. Its framing has been validated. */
  handle(config: ExtAuthzSettings, exchange: ExtAuthzExchange): boolean {
    const { path } = exchange.request;
    if (path === config.checkPath || path.startsWith(`${config.checkPath}/`)) this.#checkOverHttp(config, exchange);
    else if (path === config.reportPath) this.#reports.handle(config, exchange);
    else return false;
    return true;
  }

  get settings(): ExtAuthzSettings | undefined {
    return this.#options.snapshot().check;
  }

  now(): Millis {
    return this.#options.context.clock.now();
  }

  check(request: HttpServerRequest, response: HttpServerResponse, choice: RouteChoice, options: CheckOptions): void {
    const snapshot = this.#options.snapshot();
    const exchange = { request, response, snapshot, upgrade: undefined };
    if (snapshot.check === undefined) return this.#options.rejections.reject(request, response, NO_ROUTE_PROBLEM);
    if (!this.#rejectUntrusted(exchange, options)) this.#decide(snapshot.check, exchange, choice, options);
  }

  #checkOverHttp(config: ExtAuthzSettings, exchange: ExtAuthzExchange): void {
    const { request, response, upgrade } = exchange;
    const { rejections } = this.#options;
    upgrade?.decline();
    const options = parseCheckOptions(request, config.checkPath);
    if (options === undefined) return rejections.reject(request, response, AMBIGUOUS_QUERY);
    if (typeof options === 'string') return rejections.reject(request, response, badCheckProblem(options));
    if (this.#rejectUntrusted(exchange, options)) return;
    const checked = findCheckedRequest(request, options.dialect, config.checkPath);
    if (typeof checked === 'string') {
      return rejections.reject(request, response, badCheckProblem(checked), false, statusMappingFor(options.dialect));
    }
    assumeRequest(request, checked);
    this.#decide(config, exchange, { by: 'request' }, options);
  }

  /** Returns whether the check was rejected because of its sender. */
  #rejectUntrusted({ request, response, snapshot }: ExtAuthzExchange, { dialect }: CheckOptions): boolean {
    const peer = socketAddress(request.socket.remoteAddress);
    if (snapshot.isTrustedProxy(peer)) return false;
    const problem = { ...NOT_TRUSTED, cause: `from ${peer}` };
    this.#options.rejections.reject(request, response, problem, false, statusMappingFor(dialect));
    return true;
  }

  /** @param request the checked request */
  #decide(config: ExtAuthzSettings, exchange: ExtAuthzExchange, choice: RouteChoice, options: CheckOptions): void {
    const { request, response, snapshot, upgrade } = exchange;
    const { context, rejections, authentication, nextId, start, onDone } = this.#options;
    const mapStatus = statusMappingFor(options.dialect);
    // The checked request is invalid, not the check: its connection can be kept.
    const invalid = findInvalidRequest(request);
    if (invalid !== undefined) return rejections.reject(request, response, invalid.problem, false, mapStatus);
    const requestedMethod = preflightMethod(request);
    const find = (method: string) => findChosenRoute(config.router, choice, request, method);
    const route = find(request.verb) ?? (requestedMethod === undefined ? undefined : find(requestedMethod));
    if (route === 'ambiguous') return rejections.reject(request, response, AMBIGUOUS_ROUTE, false, mapStatus);
    if (route === undefined) {
      if (choice.by !== 'request') {
        const unknown = badCheckProblem(
          `No route that answers checks has this ${choice.by}. Use one of the configuration.`,
        );
        return rejections.reject(request, response, unknown, false, mapStatus);
      }
      if (config.allowsUnrouted) return this.#allowUncounted(exchange, options, 'Tidegate-Unrouted');
      return rejections.reject(request, response, NO_ROUTE_PROBLEM, false, mapStatus);
    }
    const isOpen = snapshot.authentication === undefined || route.isPublic;
    const isPreflight = requestedMethod !== undefined;
    const allowPreflight = (): void => this.#allowUncounted(exchange, options, 'Tidegate-Preflight');
    // A preflight of a route without `cors` reaches the upstream, and anyone can send one: it needs a credential, with an ingress too.
    if (isPreflight && (isOpen || route.cors !== undefined)) return allowPreflight();
    const repeated = findRepeatedHeader(request, route.target.identityHeaders);
    if (repeated !== undefined) {
      return rejections.reject(request, response, repeatedHeaderProblem(repeated), false, mapStatus);
    }
    const arrived = { request, response, upgrade, route, snapshot, isPreflight: false };
    const proceed = (principal?: Principal): void => {
      const routed = identifyRequest(arrived, nextId(), undefined, principal); // the ingress sends the request, and its key
      if (principal !== undefined && authentication.rejectForbidden(routed, mapStatus)) return;
      if (isPreflight) return allowPreflight();
      start(new CheckHandler(context, routed, options, onDone));
    };
    if (snapshot.authentication === undefined || isOpen) return proceed();
    authentication.run(snapshot.authentication, { ...arrived, mapStatus }, proceed);
  }

  /**
   * Allows a request that no limit applies to: one without a route, because an ingress serves other applications too, or a
   * preflight.
   * @param header name of the header that says which
   */
  #allowUncounted({ request, response }: ExtAuthzExchange, { dialect }: CheckOptions, header: string): void {
    const { context, nextId } = this.#options;
    const headers = [
      'Via',
      context.via,
      'Tidegate-Request-Id',
      nextId(),
      header,
      'true',
      'Tidegate-Permit',
      UNCOUNTED_PERMIT,
    ];
    writeEmpty(response, 200, [...headers, 'Cache-Control', 'no-store', ...allowHeadersFor(dialect)]);
    endResponse(response, request);
  }
}

/** The address is in the log only, because an ingress may forward this response to its clients. */
const NOT_TRUSTED = requestProblem(
  403,
  'Forbidden',
  'Only addresses in clients.trustedProxies may send checks. The log has the address of this one.',
  'not_trusted',
);

const AMBIGUOUS_ROUTE = requestProblem(
  400,
  'Bad request',
  'The request has an ambiguous path, which some servers read as the path of another route.',
  'bad_request',
);

/** The client may have caused it: a 403 is a refusal in every dialect. */
const AMBIGUOUS_QUERY = requestProblem(
  403,
  'Forbidden',
  'The query of the check may be the client’s. Give the check a query of its own, such as ?dialect=http.',
  'bad_check',
);

function findChosenRoute(
  router: CheckRouter,
  choice: RouteChoice,
  { headers, path }: HttpServerRequest,
  method: string,
): Route | 'ambiguous' | undefined {
  switch (choice.by) {
    case 'request':
      return router.find(method, headers.host, path);
    case 'route':
      return router.named(choice.name);
    case 'upstream':
      return router.firstOf(choice.name);
  }
}

function badCheckProblem(detail: string): ReturnType<typeof requestProblem> {
  return requestProblem(400, 'Bad check', detail, 'bad_check');
}
