import type { Problem } from '../response/problem-details.ts';
import type { Wrapping } from '../server/write-response.ts';

/**
 * How an ingress asks, and how it takes a no. The dialect decides which headers are believed: those that its ingress
 * writes itself, and never one that it passes on from a client.
 */
export const DIALECTS = [
  /** X-Forwarded-Uri and its kin (Traefik, Caddy), else the request itself; a refusal is a 429. */
  'http',
  /** X-Original-URI or -URL, X-Original-Method, and Host; auth_request knows 401 and 403 alone, and makes a 500 of everything else. */
  'nginx',
  /** The request itself; a refusal is a 429: a 5xx would stand for a check that failed, and may let the request pass. */
  'envoy',
] as const;

export type Dialect = (typeof DIALECTS)[number];

/** As the dialect has it. A refusal is always told as 429 where it is told by its status: see docs/ingress.md. */
export function wrapAs(dialect: Dialect): (problem: Problem, retryAfter: number | undefined) => Wrapping | undefined {
  return dialect === 'nginx' ? wrapForNginx : () => undefined;
}

function wrapForNginx({ status }: Problem, retryAfter: number | undefined): Wrapping {
  const told = ['Tidegate-Status', String(status)];
  return {
    status: 403,
    headers: retryAfter === undefined ? told : [...told, 'Tidegate-Retry-After', String(retryAfter)],
  };
}
