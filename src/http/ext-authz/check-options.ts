import { suggest } from '../../config/values/suggest.ts';
import { Duration } from '../../config/values/unit-schemas.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Inbound } from '../server/server-request.ts';
import type { Dialect } from './ingress-dialect.ts';
import { DIALECTS } from './ingress-dialect.ts';

/** What whoever asks says of how it wants to be answered. */
export interface CheckOptions {
  readonly dialect: Dialect;
  /** The longest that the check may wait for its turn; Infinity where the upstream's queue decides alone. */
  readonly wait: Millis;
}

const NAMES = ['dialect', 'wait'] as const;
const HEADERS = { dialect: 'tidegate-dialect', wait: 'tidegate-wait' } as const;

/**
 * Reads `?dialect=…&wait=…`, or, below the path, where the query is of the request that is asked about, the headers
 * Tidegate-Dialect and Tidegate-Wait. Returns a sentence where something is wrong;
 * undefined where it cannot be told whose the query is.
 */
export function readOptions(request: Inbound, checkPath: string): CheckOptions | string | undefined {
  const { target, path, headers } = request;
  const given = new Map<string, string>();
  if (path !== checkPath) {
    for (const name of NAMES) {
      const value = headers[HEADERS[name]];
      if (typeof value === 'string') given.set(name, value);
    }
  } else if (target.length > path.length + 1) {
    const query = target.slice(path.length + 1);
    const isPassedOn = query === queryOf(String(headers['x-forwarded-uri'] ?? ''));
    for (const [name, value] of new URLSearchParams(query)) {
      const isOption = NAMES.some((each) => each === name);
      // Caddy passes on the query of its client where its own URI has none; and of nginx a client may write that header.
      if (isPassedOn && isOption) return undefined;
      if (isPassedOn) continue;
      if (!isOption) return `There is no parameter ${quote(name)}.${hint(name, NAMES)}`;
      given.set(name, value);
    }
  }
  const told = given.get('dialect') ?? 'http';
  const dialect = DIALECTS.find((each) => each === told);
  if (dialect === undefined) return `There is no dialect ${quote(told)}.${hint(told, DIALECTS)}`;
  const wait = readWait(given.get('wait'));
  return wait === undefined ? 'wait: expected a duration such as 250ms or 1s, or 0.' : { dialect, wait };
}

function queryOf(uri: string): string {
  const at = uri.indexOf('?');
  return at < 0 ? '' : uri.slice(at + 1);
}

function readWait(text: string | undefined): Millis | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (text === '0') return 0;
  const read = Duration.safeParse(text);
  return read.success ? read.data : undefined;
}

function hint(text: string, known: readonly string[]): string {
  const nearest = suggest(text, known);
  return nearest === undefined ? ` There are ${known.join(', ')}.` : ` Did you mean ${nearest}?`;
}

/** Of what a stranger wrote no more than this is told. */
function quote(text: string): string {
  return JSON.stringify(text.slice(0, 32));
}
