import type { Inbound } from '../server/server-request.ts';

/** The most that is passed on (RFC 9110 §7.6.2 lets a proxy bound it). */
const MOST = Number.MAX_SAFE_INTEGER;

/**
 * How often an OPTIONS or a TRACE may still be forwarded (RFC 9110 §7.6.2): the least of several lines, so that a loop ends. Undefined
 * for other methods, and where the field is missing or one of its lines is no number: then it is left as it is.
 */
export function maxForwardsOf({ verb, rawHeaders }: Pick<Inbound, 'verb' | 'rawHeaders'>): number | undefined {
  if (verb !== 'OPTIONS' && verb !== 'TRACE') return undefined;
  let least: number | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'max-forwards') continue;
    const said = rawHeaders[i + 1] ?? '';
    if (!/^[0-9]+$/.test(said)) return undefined;
    least = Math.min(least ?? MOST, Number(said));
  }
  return least;
}

/** What it becomes on the way to the upstream; undefined: it stays as it is. */
export function maxForwardsLeft(request: Pick<Inbound, 'verb' | 'rawHeaders'>): number | undefined {
  const most = maxForwardsOf(request);
  return most === undefined ? undefined : Math.max(0, most - 1);
}

/** An answer of the one at whom a request ends. */
export interface FinalAnswer {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/**
 * The answer to a request that may be forwarded no further: OPTIONS has no body, TRACE has the request itself (RFC 9110 §9.3.8).
 * @param identities headers that say who asks, in lower case: like all that may be secret, they are left out
 */
export function answerAsLast(request: Inbound, identities: ReadonlySet<string>): FinalAnswer {
  if (request.verb === 'OPTIONS') return { headers: [], body: '' };
  const { verb, target, httpVersion, rawHeaders } = request;
  const lines = [`${verb} ${target} HTTP/${httpVersion}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (SECRET.test(name) || identities.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${rawHeaders[i + 1] ?? ''}`);
  }
  return { headers: ['Content-Type', 'message/http'], body: `${lines.join('\r\n')}\r\n\r\n` };
}

/** A script that is not let read a cookie must not read it here. */
const SECRET = /auth|cookie|credential|key|passw|secret|session|signature|token/i;
