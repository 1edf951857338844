import type { Scope } from '../../core/events/proxy-events.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { Hash } from './client-hash.ts';
import type { Client } from './client-identity.ts';
import type { Inbound } from '../server/server-request.ts';
import { firstMatch } from './match-path.ts';
import type { Route } from './snapshot-types.ts';
import { rewriteTarget } from './router.ts';

/** A nested limit, as requests find out whether they stand under it. */
export interface NestedRule {
  readonly name: string;
  readonly scope: Scope;
  /** Of which one must match; undefined for any path. */
  readonly patterns: readonly PathPattern[] | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly eachMethod: boolean;
  readonly eachPath: boolean;
  /** Places of the client's path at which segments tell clients apart: what stands there is never told. */
  readonly secretPlaces: ReadonlySet<number>;
}

/** What a request is to limits. */
export interface Limited {
  readonly request: Pick<Inbound, 'verb' | 'path' | 'headers'>;
  readonly route: Pick<Route, 'target' | 'path' | 'rewritePrefix'>;
  readonly client: Client;
}

/** The limits it stands under, outermost first: its upstream's own, that of its class, and those nested in it that match. */
export function limitsOf(limited: Limited, hash: Hash): readonly LimitRef[] {
  const { target } = limited.route;
  const own = refOf(limited, '', target.scope, '', hash);
  const { className } = limited.client;
  const ofClass = className === undefined ? undefined : target.classLimits.get(className);
  if (target.nested.length === 0) return ofClass === undefined ? [own] : [own, ofClass];
  const refs = ofClass === undefined ? [own] : [own, ofClass];
  const { verb } = limited.request;
  let segments: readonly string[] | undefined;
  for (const rule of target.nested) {
    if (rule.methods !== undefined && !rule.methods.has(verb)) continue;
    let key = rule.eachMethod ? verb : '';
    if (rule.patterns !== undefined) {
      // Limits are the upstream's: so are the paths that it counts by.
      segments ??= segmentsOf(rewriteTarget(limited.request.path, limited.route));
      const match = firstMatch(rule.patterns, segments);
      if (match === undefined) continue;
      const values = match.captured.map((value) => tellable(value, rule, limited.request.path, hash));
      for (const part of rule.eachPath ? [match.pattern.fill(values)] : values) key = join(key, part);
    }
    refs.push(refOf(limited, rule.name, rule.scope, key, hash));
  }
  return refs;
}

function refOf({ request, route, client }: Limited, nested: string, scope: Scope, key: string, hash: Hash): LimitRef {
  const { name, credentialHeader } = route.target;
  switch (scope) {
    case 'upstream':
      return { upstream: name, nested, scope, key };
    case 'client':
      return { upstream: name, nested, scope, key: join(client.hash, key) };
    case 'credential':
      return { upstream: name, nested, scope, key: join(hash(String(request.headers[credentialHeader] ?? '')), key) };
  }
}

/** The credential that it shows, hashed; empty where it shows none. */
export function credentialOf({ request, route }: Pick<Limited, 'request' | 'route'>, hash: Hash): string {
  const shown = request.headers[route.target.credentialHeader];
  return shown === undefined ? '' : hash(String(shown));
}

function join(key: string, part: string): string {
  if (key === '') return part;
  return part === '' ? key : `${key} ${part}`;
}

const PLAIN = /^[A-Za-z0-9._-]{1,40}$/;

/** The value of a segment, to be told and kept; hashed where it is long, odd, or what tells clients apart. */
function tellable(value: string, { secretPlaces }: NestedRule, path: string, hash: Hash): string {
  const isSecret = secretPlaces.size > 0 && isAmong(value, path, secretPlaces);
  return PLAIN.test(value) && !isSecret ? value : `#${hash(value)}`;
}

function isAmong(value: string, path: string, places: ReadonlySet<number>): boolean {
  const segments = path.split('/');
  return [...places].some((place) => segments[place] !== undefined && segmentsOf(`/${segments[place]}`)[0] === value);
}
