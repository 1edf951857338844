import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { Millis } from '../../core/scalars.ts';
import type { ClientTls } from '../../http/tls/client-tls.ts';
import { readClientTls } from '../../http/tls/client-tls.ts';
import { unixSocketPath } from '../../config/values/upstream-url.ts';

/** The clock of a server, compared with that of this machine. */
export interface ClockSample {
  /** Positive if the clock of the server is ahead. */
  readonly offset: Millis;
  /** The offset is exact within this time. */
  readonly error: Millis;
}

export interface ClockProbeOptions {
  readonly timeout: Millis;
  readonly tls: ClientTls;
}

/** A `Date` is cut to the second (RFC 9110, section 5.6.7). */
const DATE_ERROR: Millis = 500;

/**
 * Sends `HEAD /`, with no credential but a configured client certificate, and compares the `Date` of the response, whatever its status.
 * @param url an origin, or unix:/path
 * @returns undefined if there is no response over HTTP/1.1, or none with a `Date`. Never rejects
 */
export async function probeServerClock(url: string, options: ClockProbeOptions): Promise<ClockSample | undefined> {
  try {
    const sentAt = Date.now();
    const date = await readDate(url, options);
    return date === undefined ? undefined : compareClocks(date + DATE_ERROR, DATE_ERROR, sentAt, Date.now());
  } catch {
    return undefined;
  }
}

/** @param theirs the time of the server at a moment between `sentAt` and `receivedAt` of this machine, exact within `error` */
export function compareClocks(theirs: Millis, error: Millis, sentAt: Millis, receivedAt: Millis): ClockSample {
  return { offset: theirs - (sentAt + receivedAt) / 2, error: error + (receivedAt - sentAt) / 2 };
}

/** The `Date` plus the `Age` that caches have added (RFC 9111, section 4.2.3). @throws an error of the connection */
function readDate(url: string, { timeout, tls }: ClockProbeOptions): Promise<Millis | undefined> {
  const socketPath = unixSocketPath(url);
  const target = socketPath === undefined ? new URL(url) : undefined;
  const options = { method: 'HEAD', path: '/', agent: false, signal: AbortSignal.timeout(timeout) } as const;
  return new Promise((resolve, reject) => {
    const request =
      target === undefined
        ? requestHttp({ ...options, socketPath })
        : target.protocol === 'http:'
          ? requestHttp(target, options)
          : requestHttps(target, { ...options, ...tlsOptions(target, tls) });
    request.on('error', reject);
    request.on('response', ({ headers }) => {
      const date = Date.parse(headers.date ?? '');
      const age = /^\d{1,9}$/.test(headers.age ?? '') ? Number(headers.age) : 0;
      resolve(Number.isFinite(date) ? date + 1000 * age : undefined);
      request.destroy();
    });
    request.end();
  });
}

function tlsOptions({ hostname }: URL, tls: ClientTls): object {
  const host = hostname.replace(/^\[|\]$/g, '');
  return { servername: isIP(host) === 0 ? host : '', ...readClientTls(tls) };
}
