import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig } from '../load/partial-config.ts';

/** Checks need trusted proxies that may send them, and routes that answer them. */
export function* checkExternalAuthorization(
  { check, trustedProxies, routes = [], listen }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (!isWritten(['check'])) {
    for (const [i, route] of routes.entries()) {
      if (route.check === 'only') {
        yield mistakeAt(['routes', i, 'check'], 'needs the section check, which configures checks');
      } else if (isWritten(['routes', i, 'check'])) {
        yield warningAt(['routes', i, 'check'], 'has no effect without the section check');
      }
    }
    return;
  }
  if (trustedProxies?.length === 0) {
    yield mistakeAt(['check'], 'needs clients.trustedProxies: the addresses of the proxies that may ask');
  }
  if (check === undefined) return;
  const catchesAll = routes.some(({ match, check: answers }) => {
    const isAny =
      match === undefined || (match.path === '/' && match.host === undefined && match.methods === undefined);
    return isAny && answers !== 'never';
  });
  if (routes.length > 0 && !catchesAll && !isWritten(['check', 'unrouted'])) {
    yield warningAt(['check'], UNROUTED_PASSES);
  }
  if (check.grpc && listen?.tls !== undefined && listen.http2) yield mistakeAt(['check', 'grpc'], GRPC_NEEDS_HTTP2);
  if (!check.grpc && isWritten(['check', 'descriptors'])) {
    yield warningAt(['check', 'descriptors'], 'has no effect without check.grpc: true');
  }
  if (check.path === '/') yield mistakeAt(['check', 'path'], TAKES_EVERY_REQUEST, '/check');
  if (check.reportPath === '/') yield mistakeAt(['check', 'reportPath'], TAKES_EVERY_REQUEST, '/report');
  if (check.reportPath === check.path || check.reportPath.startsWith(`${check.path}/`)) {
    yield mistakeAt(['check', 'reportPath'], 'is below check.path, so it would never be reached', '/report');
  }
}

const UNROUTED_PASSES =
  'requests that no route matches pass unchecked: add a route for all requests, or set check.unrouted to pass or refuse';

const TAKES_EVERY_REQUEST = 'would match every request';

const GRPC_NEEDS_HTTP2 =
  'needs listen.http2: false with TLS: connections over HTTP/2 would be either those of clients or those of Envoy';
