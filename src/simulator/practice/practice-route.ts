import type { IncomingMessage } from 'node:http';
import type { Answer } from './practice-response.ts';

/**
 * Reads a request, then hands over the work that makes its answer; undefined when the body broke off. The work is done
 * once, later, whether or not the client is still there: a provider finishes what it has begun.
 */
export type Route = (request: IncomingMessage, ready: (work: Work | undefined) => void) => void;

export type Work = () => Answer;

/** Tells once whether the body came whole. Somebody has to read it. */
export function whenRead(request: IncomingMessage, tell: (whole: boolean) => void): void {
  let told = false;
  const settle = (whole: boolean) => {
    if (told) return;
    told = true;
    tell(whole);
  };
  request.once('end', () => settle(true));
  request.once('close', () => settle(false));
}

/** RFC 9112 §6.3: without either field a request has no body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
