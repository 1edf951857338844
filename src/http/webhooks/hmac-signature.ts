import type { Millis } from '../../core/scalars.ts';
import { checkTimestamp, decodeSignature, type SignatureEncoding, type TimestampUnit } from './signature-text.ts';
import { DIGEST_LENGTHS, invalidSignature, type DigestAlgorithm, type SignatureScheme } from './signature-types.ts';
import { AMBIGUOUS, readSignedHeader } from './signed-header.ts';

export interface HmacSchemeOptions {
  readonly header: string;
  readonly algorithm: DigestAlgorithm;
  readonly encoding: SignatureEncoding;
  /** Before the signature, in the same header; may be empty. */
  readonly prefix: string;
  /** Undefined: nothing limits how old a request may be. */
  readonly timestamp: { readonly header: string; readonly unit: TimestampUnit; readonly tolerance: Millis } | undefined;
  /** What is signed: text with one `{body}`, and `{timestamp}` where there is a timestamp. */
  readonly signed: string;
  readonly secrets: readonly string[];
}

/** One HMAC in a header, over the body or over a text that contains it. */
export function hmacScheme(options: HmacSchemeOptions): SignatureScheme {
  const { header, algorithm, encoding, prefix, timestamp: time, signed, secrets } = options;
  const [before = '', after = ''] = signed.split('{body}');
  const lower = header.toLowerCase();
  return {
    header,
    algorithm,
    secrets: secrets.map((secret) => Buffer.from(secret)),
    readClaim: (rawHeaders, now) => {
      const value = readSignedHeader(rawHeaders, lower);
      const timestamp = time === undefined ? '' : readSignedHeader(rawHeaders, time.header.toLowerCase());
      if (value === undefined || timestamp === undefined) return invalidSignature('missing');
      if (value === AMBIGUOUS || timestamp === AMBIGUOUS || !value.startsWith(prefix)) {
        return invalidSignature('malformed');
      }
      const signature = decodeSignature(value.slice(prefix.length), encoding, DIGEST_LENGTHS[algorithm]);
      if (signature === undefined) return invalidSignature('malformed');
      const fault = time === undefined ? undefined : checkTimestamp(timestamp, time.unit, time.tolerance, now);
      const fill = (text: string): string => text.replaceAll('{timestamp}', timestamp);
      return fault ?? { kind: 'claimed', signatures: [signature], before: fill(before), after: fill(after) };
    },
  };
}

/** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries */
export function githubScheme(secrets: readonly string[]): SignatureScheme {
  return hmacScheme({
    header: 'X-Hub-Signature-256',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: 'sha256=',
    timestamp: undefined,
    signed: '{body}',
    secrets,
  });
}
