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
  /** The check itself; a refusal is a 429: a 5xx would mean a failed check, which may allow the request. */
  'envoy',
] as const;

export type IngressDialect = (typeof INGRESS_DIALECTS)[number];

/** How the status of a refusal is changed for this dialect: see docs/ingress.md. */
export function statusMappingFor(
  dialect: IngressDialect | 'grpc',
): (problem: Problem, retryAfter: number | undefined) => MappedStatus | undefined {
  if (dialect === 'grpc') return () => undefined;
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
