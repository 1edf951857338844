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

export const STANDARD_SECRET_PREFIX = 'whsec_';

const PARTS = ['id', 'timestamp', 'signature'] as const;
const NAMES = { webhook: PARTS.map((part) => `webhook-${part}`), svix: PARTS.map((part) => `svix-${part}`) };

/** Longer than any identifier in use; bounds what is hashed before the body. */
const MAX_ID_LENGTH = 256;

/**
 * `webhook-signature: v1,… v1,…`, signed over `id.timestamp.body`
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md). Svix sends `svix-*` headers.
 * @param secrets each `whsec_` and base64
 */
export function standardWebhooksScheme(secrets: readonly string[], tolerance: Millis): SignatureScheme {
  return {
    header: 'webhook-signature',
    algorithm: 'sha256',
    secrets: secrets.map(standardWebhookKey),
    readClaim: (rawHeaders, now) => {
      const values = readParts(rawHeaders);
      return 'kind' in values ? values : readSignatures(values, tolerance, now);
    },
  };
}

/** @param secret `whsec_` and base64 */
export function standardWebhookKey(secret: string): Buffer {
  return Buffer.from(secret.slice(STANDARD_SECRET_PREFIX.length), 'base64');
}

type Parts = readonly [id: string, timestamp: string, signature: string];

/** With both sets of names, equal values are needed: the upstream may read the other set. */
function readParts(rawHeaders: readonly string[]): Parts | InvalidSignature {
  const own = NAMES.webhook.map((name) => readSignedHeader(rawHeaders, name));
  const svix = NAMES.svix.map((name) => readSignedHeader(rawHeaders, name));
  const hasOwn = own.some((value) => value !== undefined);
  const [id, timestamp, signature] = hasOwn ? own : svix;
  const hasBoth = hasOwn && svix.some((value) => value !== undefined);
  if (hasBoth && own.some((value, i) => value !== svix[i])) return invalidSignature('malformed');
  if ([...own, ...svix].includes(AMBIGUOUS)) return invalidSignature('malformed');
  const isComplete = typeof id === 'string' && typeof timestamp === 'string' && typeof signature === 'string';
  return isComplete ? [id, timestamp, signature] : invalidSignature('missing');
}

/** Signatures of other versions are ignored, such as the asymmetric `v1a`. */
function readSignatures(
  [id, timestamp, header]: Parts,
  tolerance: Millis,
  now: Millis,
): SignatureClaim | InvalidSignature {
  // A full stop ends the id in what is signed: with one in it, another split of the same text would be valid too.
  if (id === '' || id.length > MAX_ID_LENGTH || id.includes('.')) return invalidSignature('malformed');
  const elements = header.split(' ', MAX_SIGNATURES + 1);
  if (elements.length > MAX_SIGNATURES) return invalidSignature('malformed');
  const signatures: Buffer[] = [];
  for (const element of elements) {
    if (!element.startsWith('v1,')) continue;
    const signature = decodeSignature(element.slice('v1,'.length), 'base64', DIGEST_LENGTHS.sha256);
    if (signature === undefined) return invalidSignature('malformed');
    signatures.push(signature);
  }
  if (signatures.length === 0) return invalidSignature('malformed');
  const fault = checkTimestamp(timestamp, 's', tolerance, now);
  return fault ?? { kind: 'claimed', signatures, before: `${id}.${timestamp}.`, after: '' };
}
