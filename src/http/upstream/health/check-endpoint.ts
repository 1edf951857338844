import { Client } from 'undici';
import type { EndpointFailure } from '../../../core/events/gate-views.ts';
import type { Millis } from '../../../core/scalars.ts';
import { undiciClientOptions } from '../connector.ts';
import type { Endpoint } from '../open-endpoint.ts';
import { MASKED_RESET } from '../send-failure.ts';

/** What a check asks for, and what passes. */
export interface CheckRequest {
  /** Of the request, with a query if there is one. */
  readonly path: string;
  /** For the connection and the response head together. */
  readonly timeout: Millis;
  readonly isHealthyStatus: (status: number) => boolean;
}

/** `passed`: undefined if the check says nothing about the endpoint. */
export type CheckResult =
  | { readonly passed: true | undefined }
  | { readonly passed: false; readonly failure: Omit<EndpointFailure, 'at'> };

const NO_EVIDENCE: CheckResult = { passed: undefined };

/**
 * Sends one GET to an endpoint, over HTTP/1.1 on a connection of its own, with the TLS settings or the Unix socket of the endpoint.
 * A new connection shows that the endpoint accepts some. A 429 and a lack of files here say nothing about its health.
 */
export async function checkEndpoint(
  { origin, authority, connect }: Pick<Endpoint, 'origin' | 'authority' | 'connect'>,
  { path, timeout, isHealthyStatus }: CheckRequest,
): Promise<CheckResult> {
  let isConnected = false;
  const client = new Client(origin, {
    ...undiciClientOptions(),
    connect: (options, done) => {
      // The TLS server name is the connector's: see `DispatchRequest.servername`.
      connect({ ...options, servername: '' }, (...result) => {
        isConnected = result[0] === null;
        done(...result);
      });
    },
  });
  const signal = AbortSignal.timeout(timeout);
  try {
    const headers = { host: authority, 'user-agent': 'tidegate-health-check' };
    const { statusCode, body } = await client.request({ method: 'GET', path, headers, signal });
    body.on('error', () => undefined); // it is not read
    if (isHealthyStatus(statusCode)) return { passed: true };
    if (statusCode === 429) return NO_EVIDENCE;
    return { passed: false, failure: { reason: 'status', code: String(statusCode) } };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EMFILE' || code === 'ENFILE') return NO_EVIDENCE;
    if (signal.aborted) return { passed: false, failure: { reason: 'timeout', code: undefined } };
    return { passed: false, failure: { reason: isConnected ? 'reset' : 'connect', code } };
  } finally {
    await client.destroy();
  }
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code === MASKED_RESET ? 'ECONNRESET' : code;
}
