import { z } from 'zod';

/** During a rotation there are two; more than four are a mistake. */
const MAX_SECRETS = 4;

/** White space comes from a file with an empty line, and would never match. */
const SharedSecret = z
  .string()
  .min(1)
  .refine((secret) => secret === secret.trim(), 'begins or ends with white space');

const STANDARD_SECRET = /^whsec_(?<key>[A-Za-z0-9+/]+)(?<padding>={0,2})$/;

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme */
const MIN_KEY_BYTES = 24;

const StandardSecret = z
  .string()
  .min(1)
  .superRefine((secret, context) => {
    const message = findDefect(secret);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

function findDefect(secret: string): string | undefined {
  if (/^wh[sp]k_/.test(secret)) return 'a key of asymmetric signatures (v1a), which are not supported';
  if (secret !== '' && !secret.startsWith('whsec_')) return 'expected whsec_, followed by base64';
  const { key = '', padding = '' } = STANDARD_SECRET.exec(secret)?.groups ?? {};
  const isWhole = key.length % 4 !== 1 && (padding === '' || (key.length + padding.length) % 4 === 0);
  if (key === '' || !isWhole) return 'not base64 after whsec_';
  const isLong = Math.floor((key.length * 3) / 4) >= MIN_KEY_BYTES;
  return isLong ? undefined : `shorter than ${MIN_KEY_BYTES} bytes: a part of the secret is missing`;
}

const DESCRIPTION = 'One secret, or two while the sender changes it: a signature by any of them is valid.';

export const Secrets = z.array(SharedSecret).min(1).max(MAX_SECRETS).describe(DESCRIPTION);

/** `whsec_` and at least 24 bytes in base64, with or without padding. */
export const StandardSecrets = z.array(StandardSecret).min(1).max(MAX_SECRETS).describe(DESCRIPTION);
