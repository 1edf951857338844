import { z } from 'zod';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import { SOURCE_NUMBERS } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/**
 * What a check was about, for who reports what came of it: to be given back as it is. It grants nothing, and holds no
 * secret: who reports shows a token.
 */
export interface Permit {
  readonly upstream: string;
  /** Hashed identity. */
  readonly client: string;
  /** Milliseconds of the epoch at which the request was let pass. */
  readonly at: Millis;
  /** The limits it stood under, outermost first. */
  readonly limits: readonly LimitRef[];
  /** As of `Requester`; absent where it is not known. */
  readonly credential?: number | undefined;
  /** Where it came from and what it asked for; absent where that is not known. */
  readonly source?: Source | undefined;
}

/**
 * Of a request that no route leads to, or of a preflight, which has nothing to be told of. It is said in so many words, because what is not
 * said a client may say, or, of Caddy 2.6, the name of a placeholder.
 */
export const UNCOUNTED_PERMIT = 'unrouted';

const Limit = z.strictObject({
  nested: z.string().max(128),
  scope: z.enum(['upstream', 'client', 'credential']),
  key: z.string().max(512),
});

const Written = z.strictObject({
  u: z.string(),
  c: z.string().max(64),
  t: z.number(),
  l: z.array(Limit).max(64),
  a: z.number().optional(),
  s: z.array(z.number()).length(SOURCE_NUMBERS).optional(),
});

/** Visible ASCII. */
export function writePermit({ upstream, client, at, limits, credential, source }: Permit): string {
  const l = limits.map((limit) => ({ ...limit, upstream: undefined })); // JSON leaves it out
  return Buffer.from(
    JSON.stringify({ u: upstream, c: client, t: Math.round(10 * at) / 10, l, a: credential, s: source }),
  ).toString('base64url');
}

/** Undefined where nobody of us has written it. */
export function readPermit(text: string): Permit | undefined {
  let written: unknown;
  try {
    written = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
  const read = Written.safeParse(written);
  if (!read.success) return undefined;
  const { u: upstream, c: client, t: at, l, a: credential, s: source } = read.data;
  return { upstream, client, at, limits: l.map((rest) => ({ upstream, ...rest })), credential, source };
}
