import { z } from 'zod';
import { HeaderName } from '../name-schemas.ts';
import { PositiveDuration } from '../../values/unit-schemas.ts';
import { Secrets, StandardSecrets } from './signature-secrets.ts';

/** A day: a sender that repeats a notification later signs it again. */
const MAX_TOLERANCE = 86_400_000;

const Tolerance = PositiveDuration.refine((time) => time >= 1000 && time <= MAX_TOLERANCE, 'must be from 1s to 24h')
  .prefault('5m')
  .describe('How far the time of a signature may be from now, in both directions.');

/** Printable ASCII: it is compared with bytes of a header. */
const HeaderText = z.string().regex(/^[!-~]{1,64}$/, 'expected 1 to 64 printable ASCII characters, without spaces');

const SignedText = z.string().superRefine((text, context) => {
  const message = findTemplateDefect(text);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

function findTemplateDefect(text: string): string | undefined {
  if (!/^[ -~]{1,256}$/.test(text)) return 'expected 1 to 256 printable ASCII characters';
  const parts = text.match(/\{[^{}]*\}?/g) ?? [];
  const unknown = parts.find((part) => part !== '{body}' && part !== '{timestamp}');
  if (unknown !== undefined) return 'the only parts in braces are {body} and {timestamp}';
  return parts.filter((part) => part === '{body}').length === 1 ? undefined : 'needs {body}, once';
}

/** How the sender of a webhook is verified. */
export const VerifySchema = z.discriminatedUnion('scheme', [
  z.strictObject({
    scheme: z.literal('stripe').describe('Stripe-Signature: an HMAC-SHA256 over time and body.'),
    secrets: Secrets,
    tolerance: Tolerance,
  }),
  z.strictObject({
    scheme: z.literal('standard-webhooks').describe('webhook-signature, or svix-signature, over id, time and body.'),
    secrets: StandardSecrets,
    tolerance: Tolerance,
  }),
  z.strictObject({
    scheme: z.literal('github').describe('X-Hub-Signature-256: an HMAC-SHA256 over the body, without a time.'),
    secrets: Secrets,
  }),
  z.strictObject({
    scheme: z.literal('hmac').describe('An HMAC in a header, over the body or a text that contains it.'),
    secrets: Secrets,
    header: HeaderName.describe('The header with the signature.'),
    algorithm: z.enum(['sha1', 'sha256', 'sha512']).prefault('sha256').describe('The hash function of the HMAC.'),
    encoding: z.enum(['hex', 'base64', 'base64url']).prefault('hex').describe('How the signature is written.'),
    prefix: HeaderText.optional().describe('Text before the signature in its header, such as sha256=.'),
    timestampHeader: HeaderName.optional().describe('The header with the time of the signature, which must be signed.'),
    timestampUnit: z.enum(['s', 'ms']).prefault('s').describe('The unit of that time, counted from 1970.'),
    tolerance: Tolerance,
    signed: SignedText.prefault('{body}').describe('What is signed, such as {timestamp}.{body}.'),
  }),
]);
