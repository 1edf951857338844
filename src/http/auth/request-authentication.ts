import type { EventSink } from '../../core/events/proxy-events.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { Problem } from '../response/problem.ts';
import type { Rejections } from '../response/rejections.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { CountRequest } from '../server/request-source.ts';
import type { MapStatus } from '../server/write-problem.ts';
import type { AuthRejection } from '../../core/events/event-labels.ts';
import type { AuthResult, Principal } from './auth-types.ts';
import type { ClientAuthentication } from './client-authentication.ts';

export interface RequestAuthenticationParts {
  readonly listen: EventSink;
  readonly rejections: Pick<Rejections, 'reject'>;
  readonly count: CountRequest;
}

interface UnknownClient {
  readonly request: HttpServerRequest;
  readonly response: HttpServerResponse;
  /** See `Rejections.reject`. */
  readonly mapStatus?: MapStatus | undefined;
}

/** Lets requests of known clients on, and rejects the others before anything of their bodies is read. */
export class RequestAuthentication {
  readonly #parts: RequestAuthenticationParts;
  #pending = 0;

  constructor(parts: RequestAuthenticationParts) {
    this.#parts = parts;
  }

  /** Requests whose tokens are being verified. */
  get pendingCount(): number {
    return this.#pending;
  }

  /** @param onKnown called at once, unless a signature must be verified; not if the client disconnects meanwhile */
  run(authentication: ClientAuthentication, client: UnknownClient, onKnown: (principal: Principal) => void): void {
    const result = authentication.authenticate(client.request);
    if (!(result instanceof Promise)) return this.#conclude(authentication, client, result, onKnown);
    // It counts as a request in flight, so that the bound of those holds for it, and a drain waits for it.
    const leave = this.#parts.count(client.request, false);
    this.#pending += 1;
    let malformed: Problem | undefined;
    const { request, response } = client;
    request.bodyListener = { onMalformed: (problem) => void (malformed ??= problem) };
    void result.then((verified) => {
      this.#pending -= 1;
      leave();
      request.bodyListener = undefined;
      if (response.destroyed) return;
      // The next request on this connection could begin anywhere: it is closed.
      if (malformed !== undefined) this.#parts.rejections.reject(request, response, malformed, true);
      else this.#conclude(authentication, client, verified, onKnown);
    });
  }

  /** Rejects a request that its client may not make. Returns whether it did. */
  rejectForbidden(
    { request, response, route, client, snapshot }: Omit<RoutedRequest, 'key'>,
    mapStatus?: MapStatus,
  ): boolean {
    const { authentication, accessOf } = snapshot;
    const access = client.className === undefined ? undefined : accessOf.get(client.className);
    if (authentication === undefined || route.isPublic || access === undefined) return false;
    const isAllowed = access.routes?.has(route.name) !== false && access.methods?.has(request.verb) !== false;
    if (!isAllowed) this.#reject(authentication, { request, response, mapStatus }, 'not_allowed');
    return !isAllowed;
  }

  #conclude(
    authentication: ClientAuthentication,
    client: UnknownClient,
    result: AuthResult,
    onKnown: (principal: Principal) => void,
  ): void {
    if (result.kind === 'rejected') return this.#reject(authentication, client, result.why);
    authentication.withhold(client.request);
    onKnown(result.principal);
  }

  #reject(
    authentication: ClientAuthentication,
    { request, response, mapStatus }: UnknownClient,
    why: AuthRejection,
  ): void {
    this.#parts.listen({ type: 'auth-rejected', why });
    this.#parts.rejections.reject(request, response, authentication.problemFor(why), false, mapStatus);
  }
}
