import type { LimitScope } from './limit-state.ts';

/** Identifies a limit: an upstream's own or one nested in it, for all requests or for one client, credential or endpoint. */
export interface LimitRef {
  readonly upstream: string;
  /** Empty for the upstream's own limit; else the name of a nested limit, or `classLimitName` of a client class. */
  readonly nested: string;
  readonly scope: LimitScope;
  /** Empty for the limit of all requests; else a hash of the client or credential, and what else distinguishes it. */
  readonly key: string;
}

/** A unique name of a limit, the same in every process. */
export function limitId({ upstream, nested, scope, key }: LimitRef): string {
  return nested === '' ? `${upstream}\0${scope}\0${key}` : `${upstream}\0${scope}\0${key}\0${nested}`;
}

/** Whether a nested limit is one for each endpoint, or another key, instead of one for all requests of its owner. */
export function isKeyedRef({ scope, key }: Pick<LimitRef, 'scope' | 'key'>): boolean {
  return scope === 'upstream' ? key !== '' : key.includes(' ');
}

const CLASS_PREFIX = 'class:';

/** The name of the limit of a client class. The configuration allows no other nested limit to have such a name. */
export function classLimitName(name: string): string {
  return `${CLASS_PREFIX}${name}`;
}

const CLIENT_SUFFIX = '/client';

/** The name of the limits of the single clients of a class. */
export function clientLimitName(className: string): string {
  return `${classLimitName(className)}${CLIENT_SUFFIX}`;
}

/** Whether the limit is one of a client class, or of a client in it. The upstream does not enforce it, so nothing is learned about it from responses. */
export function isClassLimitRef({ nested }: Pick<LimitRef, 'nested'>): boolean {
  return nested.startsWith(CLASS_PREFIX);
}

/** The `limit` field of an event: the name of a nested limit. Empty for the upstream's own limit. */
export function nestedLimitField({ nested }: LimitRef): { readonly limit?: string } {
  return nested === '' ? {} : { limit: nested };
}

/** The name of a limit in text: `endpoint`, `endpoint POST charges`, `class batch`, `client of class batch`; empty for the upstream's own limit. */
export function formatLimitRef({ nested, key, scope }: Omit<LimitRef, 'upstream'>): string {
  if (isClassLimitRef({ nested })) {
    const className = nested.slice(CLASS_PREFIX.length);
    return className.endsWith(CLIENT_SUFFIX)
      ? `client of class ${className.slice(0, -CLIENT_SUFFIX.length)}`
      : `class ${className}`;
  }
  return scope === 'upstream' && key !== '' ? `${nested} ${key}` : nested;
}
