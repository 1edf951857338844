import { isManagedHeader } from '../../core/http-semantics/managed-headers.ts';
import { DEFAULT_KEY_LIFETIME } from '../../core/idempotency/key-registry.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { recognisesKeys } from '../schema/idempotency-schema.ts';
import { toList } from '../values/one-or-many.ts';

/**
 * Headers of HTTP itself, of content negotiation or of authentication: any write may have them. Headers that the proxy writes
 * are rejected too.
 */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
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
const RESERVED_HEADER_PREFIX = /^(?:access-control|content|if|proxy|sec)-/;

/** Facts from the rest of the configuration. */
export interface IdempotencyContext {
  /** Names of headers that identify clients. */
  readonly identities: readonly string[];
  readonly store: PartialConfig['state']['store'];
}

/**
 * The settings of idempotency keys agree with each other and have an effect.
 * @param path of the upstream
 */
export function* checkIdempotency(
  path: Path,
  upstream: Pick<PartialUpstream, 'idempotency' | 'rateLimit'>,
  { identities, store }: IdempotencyContext,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const { idempotency, rateLimit } = upstream;
  if (idempotency === undefined) return;
  const { header, jsonField, generate } = idempotency;
  const idempotencyPath = [...path, 'idempotency'];
  const reason =
    header === false ? undefined : whyNotAKeyHeader(header, idempotency, rateLimit?.credentialHeader, identities);
  if (reason !== undefined) {
    yield mistakeAt([...idempotencyPath, 'header'], `is ${reason}, not a key: every write would look safe to retry`);
  }
  if (generate && jsonField !== undefined) {
    yield mistakeAt(
      [...idempotencyPath, 'generate'],
      'cannot be combined with jsonField: whether a body has a key is known too late',
    );
  } else if (generate && header === false) {
    yield mistakeAt([...idempotencyPath, 'generate'], 'needs header, to write the key to: a body is never changed');
  }
  if (recognisesKeys(idempotency)) {
    const key = [...idempotencyPath, 'onStoreLost'];
    if ((store ?? 'memory') === 'memory' && isWritten(key)) {
      yield warningAt(key, 'has no effect with state.store: memory, which is never lost', 'key');
    }
    if (idempotency.replayAnswers !== undefined && (store ?? 'memory') !== 'memory' && !isWritten(['secret'])) {
      const message = `needs secret, at the top level: with state.store: ${store}, the kept responses are encrypted with it`;
      yield { ...mistakeAt([...idempotencyPath, 'replayAnswers'], message), at: 'key' };
    }
    if (idempotency.ttl === undefined && (idempotency.replayAnswers ?? 0) > DEFAULT_KEY_LIFETIME) {
      const message = 'is longer than a day, after which keys are forgotten if ttl is not known: set ttl too';
      yield mistakeAt([...idempotencyPath, 'replayAnswers'], message);
    }
    return;
  }
  for (const key of [
    'account',
    'keyScope',
    'ttl',
    'concurrent',
    'onStoreLost',
    'replayAnswers',
    'replaysErrors',
    'replayedHeader',
    'sharesKeys',
  ]) {
    if (isWritten([...idempotencyPath, key])) {
      yield warningAt([...idempotencyPath, key], 'has no effect: no idempotency key is recognised', 'key');
    }
  }
}

/** Why this header cannot carry an idempotency key; undefined if it can. */
function whyNotAKeyHeader(
  header: string,
  { account }: NonNullable<PartialUpstream['idempotency']>,
  credentialHeader = '',
  identities: readonly string[] = [],
): string | undefined {
  const name = fold(header);
  if (isManagedHeader(name) || RESERVED_HEADERS.has(name) || RESERVED_HEADER_PREFIX.test(name)) {
    return 'a standard header with another meaning';
  }
  const isSame = (other: string): boolean => fold(other) === name;
  if (isSame(credentialHeader)) return 'the credential of the client';
  if (identities.some(isSame)) return 'a header that identifies clients';
  const sources = account === 'none' ? [] : toList(account);
  return sources.some((source) => isSame(source.header)) ? 'the header that names the account' : undefined;
}

/** Servers with CGI semantics treat `_` in a header name as `-`. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
