import type { LimitScope } from '../../core/limits/limit-state.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { HashFunction } from './client-hash.ts';
import type { ClientIdentity } from './client-identity.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { firstMatchingPattern } from './match-path.ts';
import type { NestedLimitRule, Route } from './route.ts';
import { rewriteTarget } from './router.ts';

/** What limits depend on. */
export interface LimitSubject {
  readonly request: Pick<HttpServerRequest, 'verb' | 'path' | 'headers'>;
  readonly route: Pick<Route, 'target' | 'path' | 'rewritePrefix'>;
  readonly client: ClientIdentity;
}

/**
 * The limits of a request, outermost first: the upstream's, the class's, the client's in its class, and the nested limits that match.
 * @param account that it is sent with; undefined: with the client's own credential
 */
export function matchLimits(subject: LimitSubject, hash: HashFunction, account?: string): readonly LimitRef[] {
  const { target } = subject.route;
  const refs = [limitRefFor(subject, '', target.scope, '', hash, account)];
  const { className, isProven } = subject.client;
  const { shared, nestedOfClient } = (className === undefined ? undefined : target.classLimits.get(className)) ?? {};
  if (shared !== undefined) refs.push(shared);
  // A client without a proven name could choose another one.
  if (nestedOfClient !== undefined && isProven === true) {
    refs.push(limitRefFor(subject, nestedOfClient, 'client', '', hash, account));
  }
  if (target.nestedLimits.length === 0) return refs;
  const { verb } = subject.request;
  let segments: readonly string[] | undefined;
  for (const rule of target.nestedLimits) {
    if (rule.methods !== undefined && !rule.methods.has(verb)) continue;
    let key = rule.eachMethod ? verb : '';
    // An upstream's limits are matched against its own paths, after rewritePrefix.
    if (rule.patterns !== undefined || rule.exceptions !== undefined) {
      segments ??= segmentsOf(rewriteTarget(subject.request.path, subject.route));
      if (rule.exceptions !== undefined && firstMatchingPattern(rule.exceptions, segments) !== undefined) continue;
    }
    if (rule.patterns !== undefined && segments !== undefined) {
      const match = firstMatchingPattern(rule.patterns, segments);
      if (match === undefined) continue;
      const values = match.captured.map((value) => redactSegment(value, rule, subject.request.path, hash));
      for (const part of rule.eachPath ? [match.pattern.substitute(values)] : values) key = joinKey(key, part);
    }
    refs.push(limitRefFor(subject, rule.name, rule.scope, key, hash, account));
  }
  return refs;
}

function limitRefFor(
  { request, route, client }: LimitSubject,
  nested: string,
  scope: LimitScope,
  key: string,
  hash: HashFunction,
  account: string | undefined,
): LimitRef {
  const { name, credentialHeader } = route.target;
  switch (scope) {
    case 'upstream':
      return { upstream: name, nested, scope, key };
    case 'client':
      return { upstream: name, nested, scope, key: joinKey(client.hash, key) };
    case 'credential':
      return {
        upstream: name,
        nested,
        scope,
        key: joinKey(account ?? hash(String(request.headers[credentialHeader] ?? '')), key),
      };
  }
}

/** The hash of the request's credential; empty if it has none. */
export function hashedCredential(
  { request, route }: Pick<LimitSubject, 'request' | 'route'>,
  hash: HashFunction,
): string {
  const credential = request.headers[route.target.credentialHeader];
  return credential === undefined ? '' : hash(String(credential));
}

function joinKey(key: string, part: string): string {
  if (key === '') return part;
  return part === '' ? key : `${key} ${part}`;
}

const PLAIN_SEGMENT = /^[A-Za-z0-9._-]{1,40}$/;

/** The value of a path segment, for logs and stores; hashed if it is long, unusual, or identifies clients. */
function redactSegment(value: string, { secretSegments }: NestedLimitRule, path: string, hash: HashFunction): string {
  const isSecret = secretSegments.size > 0 && isSecretSegment(value, path, secretSegments);
  return PLAIN_SEGMENT.test(value) && !isSecret ? value : `#${hash(value)}`;
}

function isSecretSegment(value: string, path: string, positions: ReadonlySet<number>): boolean {
  const segments = path.split('/');
  return [...positions].some((at) => segments[at] !== undefined && segmentsOf(`/${segments[at]}`)[0] === value);
}
