import { HeaderName } from '../schema/name-schemas.ts';
import { suggest } from './suggest.ts';
import type { ParseResult } from './text-codec.ts';
import { parseFailure, textCodec } from './text-codec.ts';

/** Where a request names the account that its idempotency key belongs to. */
export type AccountSource =
  | { readonly kind: 'header'; readonly header: string }
  /** Claims of a JSON Web Token, of which the first present one counts. The token may be renewed while its claims stay the same. */
  | { readonly kind: 'jwt'; readonly header: string; readonly claims: readonly string[] };

const EXPECTED = 'header:NAME, jwt:CLAIM (of the bearer token) or jwt:HEADER:CLAIM';

export const AccountSource = textCodec<AccountSource>({
  expected: EXPECTED,
  forms: [{ type: 'string', pattern: '^(?:header:[^:\\s]+|jwt:(?:[^:\\s]+:)?[^:\\s]+)$' }],
  parse: parseAccountSource,
  format: formatAccountSource,
});

/**
 * Headers that providers document for a credential that acts on behalf of another account: Stripe Connect, Razorpay
 * Partners, PayPal's partners. A request without them names no account.
 */
export const DEFAULT_ACCOUNT_SOURCES = [
  'header:Stripe-Account',
  'header:Stripe-Context',
  'header:X-Razorpay-Account',
  'jwt:PayPal-Auth-Assertion:payer_id|email',
];

function parseAccountSource(input: string | number): ParseResult<AccountSource> {
  const text = String(input);
  const [kind, ...rest] = text.split(':');
  const [first = '', second] = rest;
  if (kind === 'header' && rest.length === 1 && isName(first)) return { ok: true, value: { kind, header: first } };
  if (kind === 'jwt' && (rest.length === 1 || rest.length === 2)) {
    const header = second === undefined ? 'Authorization' : first;
    const claims = (second ?? first).split('|');
    if (isName(header) && claims.every((claim) => claim !== '')) return { ok: true, value: { kind, header, claims } };
  }
  return rejectSource(text);
}

/** An example of each kind, as a suggestion for a kind without a name. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ['header', 'header:Stripe-Account'],
  ['jwt', 'jwt:sub'],
]);

function rejectSource(text: string): ParseResult<never> {
  const [kind = '', ...rest] = text.split(':');
  const isBare = rest.length === 0 && !EXAMPLES.has(kind) && isName(text);
  if (isBare) return parseFailure(`expected ${EXPECTED}`, `header:${text}`);
  const meant = suggest(kind, EXAMPLES.keys());
  if (meant !== undefined && rest.join('') === '') {
    return parseFailure(`expected ${EXPECTED}, with a name after the colon`, EXAMPLES.get(meant));
  }
  const corrected = [meant, ...rest].join(':');
  const isCorrected = meant !== undefined && meant !== kind && parseAccountSource(corrected).ok;
  return parseFailure(`expected ${EXPECTED}`, isCorrected ? corrected : undefined);
}

function formatAccountSource(source: AccountSource): string {
  if (source.kind === 'header') return `header:${source.header}`;
  const claims = source.claims.join('|');
  return source.header === 'Authorization' ? `jwt:${claims}` : `jwt:${source.header}:${claims}`;
}

function isName(text: string): boolean {
  return HeaderName.safeParse(text).success;
}
