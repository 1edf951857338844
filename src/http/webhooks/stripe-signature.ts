import type { Millis } from '../../core/scalars.ts';
import { checkTimestamp, decodeSignature } from './signature-text.ts';
import {
  DIGEST_LENGTHS,
  invalidSignature,
  MAX_SIGNATURES,
  type InvalidSignature,
  type SignatureClaim,
  type SignatureScheme,
} from './signature-types.ts';
import { AMBIGUOUS, readSignedHeader } from './signed-header.ts';

export const STRIPE_SIGNATURE = 'Stripe-Signature';

/** `Stripe-Signature: t=…,v1=…`, signed over `t.body` (https://docs.stripe.com/webhooks/signature). */
export function stripeScheme(secrets: readonly string[], tolerance: Millis): SignatureScheme {
  return {
    header: STRIPE_SIGNATURE,
    algorithm: 'sha256',
    secrets: secrets.map((secret) => Buffer.from(secret)), // with its prefix whsec_, not decoded
    readClaim: (rawHeaders, now) => {
      const header = readSignedHeader(rawHeaders, STRIPE_SIGNATURE.toLowerCase());
      if (header === undefined) return invalidSignature('missing');
      return header === AMBIGUOUS ? invalidSignature('malformed') : readElements(header, tolerance, now);
    },
  };
}

/** Elements of other versions are ignored: `v0` is sent in test mode. */
function readElements(header: string, tolerance: Millis, now: Millis): SignatureClaim | InvalidSignature {
  const elements = header.split(',', MAX_SIGNATURES + 2);
  if (elements.length > MAX_SIGNATURES + 1) return invalidSignature('malformed');
  const signatures: Buffer[] = [];
  let timestamp: string | undefined;
  for (const element of elements) {
    if (element.startsWith('t=')) {
      if (timestamp !== undefined) return invalidSignature('malformed');
      timestamp = element.slice('t='.length);
    } else if (element.startsWith('v1=')) {
      const signature = decodeSignature(element.slice('v1='.length), 'hex', DIGEST_LENGTHS.sha256);
      if (signature === undefined) return invalidSignature('malformed');
      signatures.push(signature);
    }
  }
  if (timestamp === undefined || signatures.length === 0) return invalidSignature('malformed');
  const fault = checkTimestamp(timestamp, 's', tolerance, now);
  return fault ?? { kind: 'claimed', signatures, before: `${timestamp}.`, after: '' };
}
