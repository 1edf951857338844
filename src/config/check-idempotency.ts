import { isOwned } from '../policy/own-headers.ts';
import type { Checked, Written } from './checked.ts';
import { mistake, warning } from './checked.ts';
import type { DraftUpstream } from './draft.ts';
import type { Path } from './mistakes.ts';
import { listOf } from './one-or-many.ts';

/** Of HTTP itself, of what is asked for, or of who asks: in every write. What we write ourselves is refused as well. */
const TAKEN: ReadonlySet<string> = new Set([
  'accept',
  'accept-charset',
  'accept-encoding',
  'accept-language',
  'authorization',
  'baggage',
  'cache-control',
  'cookie',
  'date',
  'http2-settings',
  'origin',
  'pragma',
  'range',
  'referer',
  'user-agent',
]);
const TAKEN_FAMILY = /^(?:access-control|content|if|proxy|sec)-/;

/**
 * What is said of keys fits together, and says something.
 * @param path of the upstream
 * @param identities names of headers by which clients are told apart
 */
export function* checkIdempotency(
  path: Path,
  { idempotency, rateLimit }: Pick<DraftUpstream, 'idempotency' | 'rateLimit'>,
  identities: readonly string[],
  written: Written,
): Generator<Checked> {
  if (idempotency === undefined) return;
  const { header, jsonField, generate } = idempotency;
  const own = [...path, 'idempotency'];
  const taken = header === false ? undefined : whyNoKey(header, idempotency, rateLimit?.credentialHeader, identities);
  if (taken !== undefined) {
    yield mistake([...own, 'header'], `is ${taken}, not a key: each write would look safe to send again`);
  }
  if (generate && jsonField !== undefined) {
    yield mistake([...own, 'generate'], 'goes with a header alone: whether a body has a key is known too late');
  } else if (generate && header === false) {
    yield mistake([...own, 'generate'], 'needs a header to write the key in: a body is never changed');
  }
  if (header !== false || jsonField !== undefined) return;
  for (const key of ['account', 'ttl', 'concurrent', 'replaysErrors', 'replayedHeader', 'sharesKeys']) {
    if (written([...own, key])) yield warning([...own, key], 'has no effect: no key is recognised', 'key');
  }
}

/** Why this header names no write; undefined where it may. */
function whyNoKey(
  header: string,
  { account }: NonNullable<DraftUpstream['idempotency']>,
  credentialHeader = '',
  identities: readonly string[] = [],
): string | undefined {
  const name = header.toLowerCase().replaceAll('_', '-');
  if (isOwned(name) || TAKEN.has(name) || TAKEN_FAMILY.test(name)) return 'a header with a meaning of its own';
  const isSame = (other: string): boolean => other.toLowerCase() === header.toLowerCase();
  if (isSame(credentialHeader)) return 'the credential of who asks';
  if (identities.some(isSame)) return 'what tells clients apart';
  const sources = account === 'none' ? [] : listOf(account);
  return sources.some((source) => isSame(source.header)) ? 'what names the account' : undefined;
}
