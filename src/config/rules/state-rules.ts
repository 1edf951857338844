import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import { checkCertificatePair } from './certificate-pair-rule.ts';
import type { PartialState } from '../load/partial-config.ts';
import { redisScheme } from '../values/redis-url.ts';

/** The settings of a Redis store agree with each other. */
export function* checkState(state: PartialState, isWritten: IsWritten): Generator<RuleFinding> {
  if (state.store !== 'redis') return;
  const { url, tls } = state;
  yield* checkCredentials(state);
  if (url !== undefined && url.password === undefined && state.password === undefined && !isWritten(['secret'])) {
    const message =
      'neither a password nor secret is set, so the key of the client hashes can be guessed: set the same secret for all replicas';
    yield warningAt(['state'], message, 'key');
  }
  yield* checkSentinel(state);
  if (url?.tls === false && isWritten(['state', 'tls'])) {
    const message = 'has no effect: the url is not encrypted, and TLS needs another scheme';
    yield { ...mistakeAt(['state', 'tls'], message, `url: ${redisScheme(url.kind, true)}://…`), at: 'key' };
  }
  if (tls?.insecure && url?.tls !== false) {
    yield warningAt(
      ['state', 'tls', 'insecure'],
      'the certificate is not verified: anybody can impersonate this Redis and read what is sent',
    );
  }
  yield* checkCertificatePair(['state', 'tls'], tls);
}

function* checkCredentials({ url, username, password }: PartialState): Generator<RuleFinding> {
  if (url === undefined) return;
  for (const [key, value, inUrl] of [
    ['username', username, url.username],
    ['password', password, url.password],
  ] as const) {
    if (value !== undefined && inUrl !== undefined) {
      yield mistakeAt(['state', key], 'the url has one as well: keep one');
    }
  }
  if (password !== undefined || url.password !== undefined) return;
  if (url.username !== undefined) {
    yield mistakeAt(
      ['state', 'url'],
      'a user name without a password; a password alone is written redis://:PASSWORD@host',
    );
  } else if (username !== undefined) yield mistakeAt(['state', 'username'], 'needs a password');
}

function* checkSentinel({ url, sentinelUsername, sentinelPassword }: PartialState): Generator<RuleFinding> {
  if (url !== undefined && url.kind !== 'sentinel') {
    const message = 'only with a url that begins with redis+sentinel or rediss+sentinel';
    if (sentinelUsername !== undefined) yield mistakeAt(['state', 'sentinelUsername'], message);
    if (sentinelPassword !== undefined) yield mistakeAt(['state', 'sentinelPassword'], message);
  } else if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    yield mistakeAt(['state', 'sentinelUsername'], 'needs sentinelPassword');
  }
}
