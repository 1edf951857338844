import type { SignatureFault } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';

/** Why a signature was not accepted. */
export interface InvalidSignature {
  readonly kind: 'invalid';
  readonly reason: SignatureFault;
}

export type SignatureResult = { readonly kind: 'valid' } | InvalidSignature;

/** What the headers of a request claim: one of these signatures is the HMAC of `before`, the body and `after`. */
export interface SignatureClaim {
  readonly kind: 'claimed';
  /** Decoded; each as long as a digest of the scheme; at most `MAX_SIGNATURES`. */
  readonly signatures: readonly Buffer[];
  /** One character a byte. */
  readonly before: string;
  readonly after: string;
}

export type DigestAlgorithm = 'sha1' | 'sha256' | 'sha512';

/** How a route verifies who sent a request. */
export interface SignatureScheme {
  /** The header with the signature, which the challenge of a 401 names. */
  readonly header: string;
  readonly algorithm: DigestAlgorithm;
  /** Any of them may match: during a rotation there are two. */
  readonly secrets: readonly Buffer[];
  /**
   * Reads the headers, without the body.
   * @param rawHeaders names and values in turn
   * @param now milliseconds of the epoch
   */
  readonly readClaim: (rawHeaders: readonly string[], now: Millis) => SignatureClaim | InvalidSignature;
}

export const DIGEST_LENGTHS: Readonly<Record<DigestAlgorithm, number>> = { sha1: 20, sha256: 32, sha512: 64 };

/** Signatures of one request; a header with more elements is malformed. Bounds the work for a request from anybody. */
export const MAX_SIGNATURES = 16;

export function invalidSignature(reason: SignatureFault): InvalidSignature {
  return { kind: 'invalid', reason };
}
