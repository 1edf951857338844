/** The parts that access logs of proxies and web servers have in common. */
import type { Millis } from '../../../core/scalars.ts';
import type { LoggedRequest } from '../logged-request.ts';
import { endOfAnswer, SINGLE_ATTEMPT } from '../logged-request.ts';

/** A line of an access log. Times in ms. */
export interface AccessRecord {
  /** When the request came. */
  readonly at: Millis;
  readonly client: string;
  readonly status: number;
  readonly method: string;
  /** With a query or without. */
  readonly path: string;
  readonly upstream?: string;
  /** The time of the whole request. */
  readonly took: Millis | undefined;
  /** The time of the upstream. */
  readonly service: Millis | undefined;
  /** True if a 503 is no rejection: nothing was reached, or nothing came back. */
  readonly isUnreached?: boolean;
}

/**
 * A request that a proxy sent once. 429 and 503 are rejections: nginx, Envoy and HAProxy limit with a 503 by default.
 */
export function toLoggedRequest(record: AccessRecord, line: number): LoggedRequest {
  const { at, client, status, method, path, upstream = '', took, service, isUnreached = false } = record;
  const answer = classifyAccess(status, isUnreached);
  // nginx logs 499, Envoy 0, and ALB 460 if the client disconnected first.
  const isGone = status === 499 || status === 460 || status === 0;
  return {
    line,
    at,
    client,
    end: isGone ? 'gone' : endOfAnswer(answer),
    attempts: SINGLE_ATTEMPT[isGone ? 'unheard' : answer],
    upstream,
    method,
    path: path.split(/[?#]/, 1)[0] || '/',
    service,
    took,
  };
}

function classifyAccess(status: number, isUnreached: boolean): 'passed' | 'refused' | 'failed' {
  if (status === 429 || (status === 503 && !isUnreached)) return 'refused';
  return status >= 500 ? 'failed' : 'passed';
}

/** A duration in seconds, as text; undefined for `-` and for values below 0, which stand for none. */
export function parseSeconds(text: string | undefined): Millis | undefined {
  return text !== undefined && /^\d+(?:\.\d+)?$/.test(text) ? 1000 * Number(text) : undefined;
}

/** `203.0.113.7:41012` and `[2001:db8::1]:41012` without the port. */
export function withoutPort(address: string): string {
  return /^\[(.+)\]:\d+$/.exec(address)?.[1] ?? address.replace(/^([^:]+):\d+$/, '$1');
}

/** `"GET /path HTTP/1.1"` without its quotes, split. */
export function parseRequestLine(text: string): { readonly method: string; readonly path: string } {
  const [method = '', target = '/'] = text.split(' ');
  // ALB logs the whole URL.
  const path = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1] ?? target;
  return /^[A-Z]+$/.test(method) ? { method, path } : { method: 'GET', path: '/' };
}
