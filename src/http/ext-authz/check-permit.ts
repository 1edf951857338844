import { z } from 'zod';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { ATTRIBUTE_COUNT } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/scalars.ts';

/**
 * The subject of a check. The ingress returns it unchanged with its report. It grants nothing and contains no secret: reports
 * need a token.
 */
export interface CheckPermit {
  readonly upstream: string;
  /** Hash of the client's identity. */
  readonly client: string;
  /** When the request was allowed, in milliseconds of the epoch. */
  readonly allowedAt: Millis;
  /** The limits that applied, outermost first. */
  readonly limits: readonly LimitRef[];
  /** See `Requester`; absent if not known. */
  readonly credential?: number | undefined;
  /** Absent if not known. */
  readonly source?: RequestAttributes | undefined;
}

/**
 * The permit of a request without a route, and of a preflight: reports about them are ignored. It is always sent, because the
 * ingress would otherwise forward a client's header of this name, or with Caddy 2.6 the name of a placeholder.
 */
export const UNCOUNTED_PERMIT = 'unrouted';

const PermitLimit = z.strictObject({
  nested: z.string().max(128),
  scope: z.enum(['upstream', 'client', 'credential']),
  key: z.string().max(512),
});

const PermitJson = z.strictObject({
  u: z.string(),
  c: z.string().max(64),
  t: z.number(),
  l: z.array(PermitLimit).max(64),
  a: z.number().optional(),
  s: z.array(z.number()).length(ATTRIBUTE_COUNT).optional(),
});

/** Encodes a permit in visible ASCII. */
export function encodePermit({ upstream, client, allowedAt, limits, credential, source }: CheckPermit): string {
  const l = limits.map((limit) => ({ ...limit, upstream: undefined })); // JSON leaves it out
  return Buffer.from(
    JSON.stringify({ u: upstream, c: client, t: Math.round(10 * allowedAt) / 10, l, a: credential, s: source }),
  ).toString('base64url');
}

/** Undefined if the text is not a permit. */
export function decodePermit(text: string): CheckPermit | undefined {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  const parsed = PermitJson.safeParse(json);
  if (!parsed.success) return undefined;
  const { u: upstream, c: client, t: allowedAt, l, a: credential, s: source } = parsed.data;
  return { upstream, client, allowedAt, limits: l.map((rest) => ({ upstream, ...rest })), credential, source };
}
