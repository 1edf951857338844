import { createHash } from 'node:crypto';
import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';
import { isClientName } from '../../config/auth/key-file.ts';
import type { AuthRejection } from '../../core/events/event-labels.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import { type AuthResult, type CredentialCheck, type Principal, rejected } from './auth-types.ts';
import { type Jwks, JwksUnavailable } from './jwks.ts';
import { verifyByAnyKey } from './verify-by-any-key.ts';

export interface JwtRules {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly algorithms: readonly string[];
  readonly header: string;
  readonly nameClaim: string;
  readonly namePrefix?: string | undefined;
  readonly clockTolerance: Millis;
}

/** Longer ones are rejected before anything of them is decoded. */
const MAX_LENGTH = 16 * 1024;
/** Valid tokens that are remembered: a signature takes some hundred times as long to verify as a look-up. */
const MAX_TOKENS = 10_000;

interface VerifiedToken {
  readonly principal: Principal;
  /** Milliseconds of the epoch; with the tolerance. */
  readonly validUntil: Millis;
}

/** JSON Web Tokens of one issuer (RFC 7519). A token needs an expiry. */
export class JwtCheck implements CredentialCheck {
  readonly header: string;
  readonly #rules: JwtRules;
  readonly #jwks: Jwks;
  readonly #wallClock: () => Millis;
  /** By the digest of the token, oldest first. */
  readonly #verified = new Map<string, VerifiedToken>();
  /** Of the keys by which these were verified. */
  #version: number | undefined;
  #evictions = 0;

  /** @param wallClock milliseconds of the epoch */
  constructor(rules: JwtRules, jwks: Jwks, wallClock: () => Millis) {
    this.header = rules.header.toLowerCase();
    this.#rules = rules;
    this.#jwks = jwks;
    this.#wallClock = wallClock;
  }

  get bound(): ResourceBound {
    return { name: 'verified_tokens', used: this.#verified.size / MAX_TOKENS, reached: this.#evictions };
  }

  accepts(): boolean {
    return true;
  }

  verify(token: string): AuthResult | Promise<AuthResult> {
    if (token.length > MAX_LENGTH || token.split('.', 4).length !== 3) return rejected('malformed');
    const digest = createHash('sha256').update(token).digest('base64');
    const known = this.#recall(digest);
    return known === undefined ? this.#verifySignature(token, digest) : { kind: 'known', principal: known.principal };
  }

  /** Keys that were removed, or are too old, prove nothing any more. */
  #recall(digest: string): VerifiedToken | undefined {
    const version = this.#jwks.version();
    if (version !== this.#version) {
      this.#verified.clear();
      this.#version = version;
    }
    const known = this.#verified.get(digest);
    if (known === undefined || this.#wallClock() < known.validUntil) return known;
    this.#verified.delete(digest);
    return undefined;
  }

  async #verifySignature(token: string, digest: string): Promise<AuthResult> {
    const { issuer, audience, algorithms, clockTolerance, nameClaim, namePrefix = '' } = this.#rules;
    let payload: JWTPayload;
    let version: number | undefined;
    const getKey: JWTVerifyGetKey = async (header, input) => {
      try {
        return await this.#jwks.getKey(header, input);
      } finally {
        version = this.#jwks.version();
      }
    };
    const options: JWTVerifyOptions = {
      issuer,
      audience: [...audience],
      algorithms: [...algorithms],
      clockTolerance: clockTolerance / 1000,
      currentDate: new Date(this.#wallClock()),
      requiredClaims: ['exp'],
    };
    try {
      payload = await verifyByAnyKey(token, getKey, options);
    } catch (error) {
      return rejected(rejectionOf(error));
    }
    const claim = payload[nameClaim];
    const name = `${namePrefix}${typeof claim === 'string' ? claim : ''}`;
    if (typeof claim !== 'string' || claim === '' || !isClientName(name)) return rejected('no_name');
    const principal: Principal = { name, provenBy: 'jwt' };
    this.#remember(digest, version, { principal, validUntil: 1000 * (payload.exp ?? 0) + clockTolerance });
    return { kind: 'known', principal };
  }

  #remember(digest: string, version: number | undefined, token: VerifiedToken): void {
    if (version === undefined || version !== this.#jwks.version()) return;
    this.#version = version;
    if (this.#verified.size >= MAX_TOKENS) {
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined) this.#verified.delete(oldest);
      this.#evictions += 1;
    }
    this.#verified.set(digest, token);
  }
}

/** By the codes of jose, whose classes need not be loaded for it. */
const REJECTIONS: ReadonlyMap<unknown, AuthRejection> = new Map([
  ['ERR_JWT_EXPIRED', 'expired'],
  ['ERR_JWKS_NO_MATCHING_KEY', 'unknown_key'],
  ['ERR_JWS_SIGNATURE_VERIFICATION_FAILED', 'bad_signature'],
  ['ERR_JOSE_ALG_NOT_ALLOWED', 'wrong_algorithm'],
]);

const REJECTIONS_BY_CLAIM: ReadonlyMap<unknown, AuthRejection> = new Map([
  ['iss', 'wrong_issuer'],
  ['aud', 'wrong_audience'],
  ['nbf', 'not_yet_valid'],
]);

function rejectionOf(error: unknown): AuthRejection {
  if (error instanceof JwksUnavailable) return 'keys_unavailable';
  if (!(error instanceof Error && 'code' in error)) return 'malformed';
  const byClaim = 'claim' in error ? REJECTIONS_BY_CLAIM.get(error.claim) : undefined;
  return REJECTIONS.get(error.code) ?? byClaim ?? 'malformed';
}
