import { isOwned } from '../../core/http-semantics/managed-headers.ts';
import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { originsOf } from '../schema/upstream-schema.ts';
import { listOf } from '../values/one-or-many.ts';

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

const SEVERAL =
  'another process may repeat a write at another of them: say idempotency.sharesKeys: true if all of them know the same keys, or false if you know of it';

/** What else the configuration says. */
export interface Surroundings {
  /** Names of headers by which clients are told apart. */
  readonly identities: readonly string[];
  /** No other process sends to the same upstreams, as far as is known. */
  readonly isAlone: boolean;
}

/**
 * What is said of keys fits together, and says something.
 * @param path of the upstream
 */
export function* checkIdempotency(
  path: Path,
  upstream: Pick<DraftUpstream, 'idempotency' | 'rateLimit' | 'url' | 'urls'>,
  { identities, isAlone }: Surroundings,
  written: Written,
): Generator<Checked> {
  const { idempotency, rateLimit } = upstream;
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
  const isRecognised = header !== false || jsonField !== undefined;
  if (isRecognised && !isAlone && originsOf(upstream).length > 1 && !written([...own, 'sharesKeys'])) {
    yield warning([...path, 'urls'], SEVERAL, 'key');
  }
  if (isRecognised) return;
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
  const name = fold(header);
  if (isOwned(name) || TAKEN.has(name) || TAKEN_FAMILY.test(name)) return 'a header with a meaning of its own';
  const isSame = (other: string): boolean => fold(other) === name;
  if (isSame(credentialHeader)) return 'the credential of who asks';
  if (identities.some(isSame)) return 'what tells clients apart';
  const sources = account === 'none' ? [] : listOf(account);
  return sources.some((source) => isSame(source.header)) ? 'what names the account' : undefined;
}

/** Servers that read names as CGI does take a name with `_` for one with `-`. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
