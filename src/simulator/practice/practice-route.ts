import type { IncomingMessage } from 'node:http';
import type { PracticeResponse } from './practice-response.ts';

/**
 * Reads a request, then passes on the work that makes its response; undefined if the body broke off. The work runs
 * once, later, even if the client has disconnected: a provider finishes what it has begun.
 */
export type PracticeRoute = (request: IncomingMessage, ready: (work: MakeResponse | undefined) => void) => void;

export type MakeResponse = () => PracticeResponse;

/** Calls back once with whether the body arrived complete. The caller must read it. */
export function onBodyEnd(request: IncomingMessage, callback: (whole: boolean) => void): void {
  let isSettled = false;
  const settle = (whole: boolean) => {
    if (isSettled) return;
    isSettled = true;
    callback(whole);
  };
  request.once('end', () => settle(true));
  request.once('close', () => settle(false));
}

/** RFC 9112 §6.3: without either field a request has no body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}
