import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Millis } from '../../core/scalars.ts';
import {
  invalidSignature,
  type SignatureClaim,
  type SignatureResult,
  type SignatureScheme,
} from './signature-types.ts';

/** Verifies the headers and the body of one request. @param now milliseconds of the epoch */
export function verifySignature(
  scheme: SignatureScheme,
  rawHeaders: readonly string[],
  body: Uint8Array,
  now: Millis,
): SignatureResult {
  const claim = scheme.readClaim(rawHeaders, now);
  return claim.kind === 'invalid' ? claim : verifyClaim(scheme, claim, body);
}

/** Compares each signature with the one that each secret gives, in constant time: one HMAC a secret. */
export function verifyClaim(
  { algorithm, secrets }: Pick<SignatureScheme, 'algorithm' | 'secrets'>,
  { signatures, before, after }: SignatureClaim,
  body: Uint8Array,
): SignatureResult {
  for (const secret of secrets) {
    const hmac = createHmac(algorithm, secret);
    const digest = hmac.update(before, 'latin1').update(body).update(after, 'latin1').digest();
    for (const signature of signatures) {
      if (signature.length === digest.length && timingSafeEqual(signature, digest)) return { kind: 'valid' };
    }
  }
  return invalidSignature('mismatch');
}
