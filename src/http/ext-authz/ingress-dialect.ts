import type { Problem } from '../response/problem.ts';
import type { MappedStatus } from '../server/write-problem.ts';

/**
 * How an ingress sends checks, and how it interprets a refusal. The dialect decides which headers are used: those that the ingress
 * writes itself, never one that it forwards from a client.
 */
export const INGRESS_DIALECTS = [
  /** X-Forwarded-Uri and similar headers (Traefik, Caddy), or the check itself; a refusal is a 429. */
  'http',
  /** X-Original-URI or -URL, X-Original-Method, and Host; auth_request supports only 401 and 403, and turns others into a 500. */
  'nginx',
  /** As `nginx`, but nginx forwards the answer to the client as it is, unless X-Accel-Redirect names the location of the app. */
  'x-accel',
  /** The check itself; a refusal is a 429: a 5xx would mean a failed check, which may allow the request. */
  'envoy',
] as const;

/** The named location of nginx that forwards allowed requests. */
const ACCEL_LOCATION = '@app';

/** What the answer "yes" has in this dialect beside the headers of all: names and values in turn. */
export function allowHeadersFor(dialect: CheckDialect): readonly string[] {
  return dialect === 'x-accel' ? ['X-Accel-Redirect', ACCEL_LOCATION] : [];
}

/** Whether a refusal keeps the status of the proxy: whoever gets it takes a 5xx for a refusal, not for a failed check. */
export function keepsStatus(dialect: CheckDialect): boolean {
  return dialect === 'grpc' || dialect === 'x-accel';
}

export type IngressDialect = (typeof INGRESS_DIALECTS)[number];

/** With the form of checks that are no requests over HTTP. */
export type CheckDialect = IngressDialect | 'grpc';

/** How the status of a refusal is changed for this dialect: see docs/ingress.md. */
export function statusMappingFor(
  dialect: CheckDialect,
): (problem: Problem, retryAfter: number | undefined) => MappedStatus | undefined {
  if (keepsStatus(dialect)) return () => undefined;
  return dialect === 'nginx' ? mapStatusForNginx : mapServerError;
}

/** A 5xx would mean a failed check, which may allow the request: while no token can be verified, none may pass. */
function mapServerError({ status }: Problem): MappedStatus | undefined {
  return status < 500 ? undefined : { status: 429, headers: ['Tidegate-Status', String(status)] };
}

function mapStatusForNginx({ status }: Problem, retryAfter: number | undefined): MappedStatus | undefined {
  if (status === 401) return undefined; // auth_request passes it on, with its WWW-Authenticate
  const headers = ['Tidegate-Status', String(status)];
  return {
    status: 403,
    headers: retryAfter === undefined ? headers : [...headers, 'Tidegate-Retry-After', String(retryAfter)],
  };
}
