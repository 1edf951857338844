import type { ClientHttp2Stream } from 'node:http2';
import type { Millis } from '../../../core/scalars.ts';

/** An upstream may count the resets of a connection, and close it after too many: so it has this time to end the stream itself. */
const END_GRACE: Millis = 1000;

/** Whether a response has no body, whatever frames follow its head (RFC 9110 §6.4.1). */
export function isBodyless(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/** Resets a stream that has a body nevertheless, or that does not end. */
export function resetUnlessEnded(stream: ClientHttp2Stream, reset: () => void): void {
  const timer = setTimeout(reset, END_GRACE);
  stream.once('data', reset);
  stream.once('end', () => clearTimeout(timer));
  stream.once('close', () => clearTimeout(timer));
}
