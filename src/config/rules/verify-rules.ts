import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import type { PartialConfig, PartialRoute } from '../load/partial-config.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** Signatures can be verified, and no other way leads around them. */
export function* checkVerify(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  const { routes = [] } = draft;
  for (const [i, route] of routes.entries()) {
    const { verify } = route;
    if (verify === undefined) continue;
    const path = ['routes', i, 'verify'];
    if (verify.scheme === 'hmac') yield* checkTimestamp(path, verify, isWritten);
    if (new Set(verify.secrets).size < verify.secrets.length) {
      yield mistakeAt([...path, 'secrets'], 'the same secret twice');
    }
    if (isWritten(['check']) && route.check !== 'never') yield mistakeAt(path, CHECKS_HAVE_NO_BODY);
    const other = findWayAround(route, routes);
    if (other !== undefined) {
      const message = `routes[${other}] forwards what this route does not match, unverified, to the same upstream: ${WAY_AROUND}`;
      yield warningAt(path, message, 'key');
    }
  }
}

const CHECKS_HAVE_NO_BODY =
  'a check has no body, so its signature cannot be verified: add check: never to this route, and let requests of this path pass through Tidegate';

const WAY_AROUND = 'an upstream that ignores the host, or the method, handles it as a request of this one';

type HmacConfig = Extract<NonNullable<PartialRoute['verify']>, { readonly scheme: 'hmac' }>;

function* checkTimestamp(
  path: readonly (string | number)[],
  { timestampHeader, signed }: HmacConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const isSigned = signed.includes('{timestamp}');
  if (timestampHeader === undefined) {
    if (isSigned) yield mistakeAt([...path, 'signed'], '{timestamp} needs timestampHeader, which contains it');
    for (const key of ['tolerance', 'timestampUnit']) {
      if (isWritten([...path, key])) yield warningAt([...path, key], 'has no effect without timestampHeader', 'key');
    }
  } else if (!isSigned) {
    yield mistakeAt(
      [...path, 'timestampHeader'],
      'anybody can change a time that is not signed: add {timestamp} to signed',
      '{timestamp}.{body}',
    );
  }
}

/** The index of a route without verification that takes requests of the same path to the same upstream; undefined if none does. */
function findWayAround({ match, upstream }: PartialRoute, routes: readonly PartialRoute[]): number | undefined {
  if (match === undefined) return undefined;
  const index = routes.findIndex((other) => {
    if (other.verify !== undefined || other.upstream !== upstream || other.match === undefined) return false;
    if (!match.path.startsWith(other.match.path)) return false;
    if (match.host !== undefined && other.match.host !== match.host) return true;
    const { methods } = match;
    const others = other.match.methods ?? ['PUT'];
    return methods !== undefined && others.some((method) => !isSafeMethod(method) && !methods.includes(method));
  });
  return index < 0 ? undefined : index;
}
