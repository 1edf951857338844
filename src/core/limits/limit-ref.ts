import type { Scope } from '../events/proxy-events.ts';

/** Which limit: an upstream's own or one nested in it, of all together or of one client, credential or endpoint. */
export interface LimitRef {
  readonly upstream: string;
  /** Empty for the upstream's own; else the name of a nested one, or that of a class of clients (`ofClass`). */
  readonly nested: string;
  readonly scope: Scope;
  /** Empty for the one of all; else a hash of the client or credential, and what else tells it from others. */
  readonly key: string;
}

const CLASS = 'class:';

/** What the limit of a class of clients is called. No nested limit that is configured has such a name. */
export function ofClass(name: string): string {
  return `${CLASS}${name}`;
}

/** Set by us alone, of which the upstream knows nothing: no answer teaches it anything. */
export function isOfClass({ nested }: Pick<LimitRef, 'nested'>): boolean {
  return nested.startsWith(CLASS);
}

/** For an event: the name of a nested limit, and nothing for an upstream's own. */
export function nameNested({ nested }: LimitRef): { readonly limit?: string } {
  return nested === '' ? {} : { limit: nested };
}

/** A limit as people are told of it: `endpoint`, `endpoint POST charges`, `class batch`; empty for an upstream's own. */
export function tellLimit({ nested, key, scope }: Omit<LimitRef, 'upstream'>): string {
  if (isOfClass({ nested })) return nested.replace(':', ' ');
  return scope === 'upstream' && key !== '' ? `${nested} ${key}` : nested;
}
