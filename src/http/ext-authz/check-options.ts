import { suggest } from '../../config/values/suggest.ts';
import { Duration } from '../../config/values/unit-schemas.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Millis } from '../../core/scalars.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { CheckDialect, IngressDialect } from './ingress-dialect.ts';
import { INGRESS_DIALECTS } from './ingress-dialect.ts';

/** How the ingress wants its check to be answered. */
export interface CheckOptions {
  readonly dialect: CheckDialect;
  /** Maximum time in the queue; Infinity: the upstream's queue settings decide. */
  readonly maxWait: Millis;
  /** Called with the limits of the request when they have been decided on, before the response is written. */
  readonly onDecided?: ((limits: readonly Limit[]) => void) | undefined;
}

/** Those of a check over HTTP. */
export interface HttpCheckOptions extends CheckOptions {
  readonly dialect: IngressDialect;
}

const OPTION_NAMES = ['dialect', 'wait'] as const;
const OPTION_HEADERS = { dialect: 'tidegate-dialect', wait: 'tidegate-wait' } as const;

/**
 * Reads `?dialect=…&wait=…`; below the check path, where the query belongs to the checked request, the headers Tidegate-Dialect
 * and Tidegate-Wait. Returns a sentence if an option is invalid, and undefined if the query may be the client's.
 */
export function parseCheckOptions(
  request: HttpServerRequest,
  checkPath: string,
): HttpCheckOptions | string | undefined {
  const { target, path, headers } = request;
  const values = new Map<string, string>();
  if (path !== checkPath) {
    for (const name of OPTION_NAMES) {
      const value = headers[OPTION_HEADERS[name]];
      if (typeof value === 'string') values.set(name, value);
    }
  } else if (target.length > path.length + 1) {
    const query = target.slice(path.length + 1);
    const isForwardedQuery = query === queryOf(String(headers['x-forwarded-uri'] ?? ''));
    for (const [name, value] of new URLSearchParams(query)) {
      const isOption = OPTION_NAMES.some((each) => each === name);
      // Caddy forwards the client's query if its own URI has none; and behind nginx a client may write that header.
      if (isForwardedQuery && isOption) return undefined;
      if (isForwardedQuery) continue;
      if (!isOption) return `Unknown parameter ${quoteTruncated(name)}.${suggestion(name, OPTION_NAMES)}`;
      values.set(name, value);
    }
  }
  const dialectName = values.get('dialect') ?? 'http';
  const dialect = INGRESS_DIALECTS.find((each) => each === dialectName);
  if (dialect === undefined) {
    return `Unknown dialect ${quoteTruncated(dialectName)}.${suggestion(dialectName, INGRESS_DIALECTS)}`;
  }
  const maxWait = parseMaxWait(values.get('wait'));
  return maxWait === undefined ? WAIT_EXPECTED : { dialect, maxWait };
}

export const WAIT_EXPECTED = 'wait: expected a duration such as 250ms or 1s, or 0.';

function queryOf(uri: string): string {
  const at = uri.indexOf('?');
  return at < 0 ? '' : uri.slice(at + 1);
}

/**
 * Parses `250ms`, `1s` or `0`. Undefined if the text is neither.
 * @param text undefined: Infinity
 */
export function parseMaxWait(text: string | undefined): Millis | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (text === '0') return 0;
  const read = Duration.safeParse(text);
  return read.success ? read.data : undefined;
}

function suggestion(text: string, known: readonly string[]): string {
  const nearest = suggest(text, known);
  return nearest === undefined ? ` Use one of ${known.join(', ')}.` : ` Did you mean ${nearest}?`;
}

/** Quotes at most 32 characters of untrusted text. */
function quoteTruncated(text: string): string {
  return JSON.stringify(text.slice(0, 32));
}
