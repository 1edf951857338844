import { HeaderName } from '../schema/name-schemas.ts';
import { suggest } from './suggest.ts';
import type { Reading } from './text-codec.ts';
import { misread, written } from './text-codec.ts';

/** Where a request names the account that its idempotency key belongs to. */
export type AccountSource =
  | { readonly kind: 'header'; readonly header: string }
  /** Claims of a JSON Web Token, of which the first that it has counts: it may be replaced while they stay. */
  | { readonly kind: 'jwt'; readonly header: string; readonly claims: readonly string[] };

const EXPECTED = 'header:NAME, jwt:CLAIM (of the bearer token) or jwt:HEADER:CLAIM';

export const AccountSource = written<AccountSource>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: '^(?:header:[^:\\s]+|jwt:(?:[^:\\s]+:)?[^:\\s]+)$' }],
  read: readAccountSource,
  write: writeAccountSource,
});

/**
 * Headers by which providers document that one credential acts for another account: Stripe Connect, Razorpay Partners, PayPal's
 * partners. A request without them names no account.
 */
export const USUAL_ACCOUNT = [
  'header:Stripe-Account',
  'header:Stripe-Context',
  'header:X-Razorpay-Account',
  'jwt:PayPal-Auth-Assertion:payer_id|email',
];

function readAccountSource(input: string | number): Reading<AccountSource> {
  const text = String(input);
  const [kind, ...rest] = text.split(':');
  const [first = '', second] = rest;
  if (kind === 'header' && rest.length === 1 && isName(first)) return { ok: true, value: { kind, header: first } };
  if (kind === 'jwt' && (rest.length === 1 || rest.length === 2)) {
    const header = second === undefined ? 'Authorization' : first;
    const claims = (second ?? first).split('|');
    if (isName(header) && claims.every((claim) => claim !== '')) return { ok: true, value: { kind, header, claims } };
  }
  return misreadSource(text);
}

/** Of each kind, one that says something: the kind alone is no source. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ['header', 'header:Stripe-Account'],
  ['jwt', 'jwt:sub'],
]);

function misreadSource(text: string): Reading<never> {
  const [kind = '', ...rest] = text.split(':');
  const isBare = rest.length === 0 && !EXAMPLES.has(kind) && isName(text);
  if (isBare) return misread(`expected ${EXPECTED}`, `header:${text}`);
  const meant = suggest(kind, EXAMPLES.keys());
  if (meant !== undefined && rest.join('') === '') {
    return misread(`expected ${EXPECTED}, with a name behind the colon`, EXAMPLES.get(meant));
  }
  const mended = [meant, ...rest].join(':');
  const isMended = meant !== undefined && meant !== kind && readAccountSource(mended).ok;
  return misread(`expected ${EXPECTED}`, isMended ? mended : undefined);
}

function writeAccountSource(source: AccountSource): string {
  if (source.kind === 'header') return `header:${source.header}`;
  const claims = source.claims.join('|');
  return source.header === 'Authorization' ? `jwt:${claims}` : `jwt:${source.header}:${claims}`;
}

function isName(text: string): boolean {
  return HeaderName.safeParse(text).success;
}
