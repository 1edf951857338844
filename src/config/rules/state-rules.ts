import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import { checkPair } from './certificate-pair-rule.ts';
import type { DraftState } from '../load/partial-config.ts';
import { schemeOf } from '../values/redis-url.ts';

/** What is said of a Redis store fits together. */
export function* checkState(state: DraftState, written: Written): Generator<Checked> {
  if (state.store !== 'redis') return;
  const { url, tls } = state;
  yield* checkCredentials(state);
  if (url !== undefined && url.password === undefined && state.password === undefined && !written(['secret'])) {
    const message =
      'no password, and no secret: what keys the hashes of clients can be guessed; set secret, the same for all replicas';
    yield warning(['state'], message, 'key');
  }
  yield* checkSentinel(state);
  if (url?.tls === false && written(['state', 'tls'])) {
    const message = 'the url is not encrypted, and this has no effect: TLS needs another scheme';
    yield { ...mistake(['state', 'tls'], message, `url: ${schemeOf(url.kind, true)}://…`), at: 'key' };
  }
  if (tls?.insecure && url?.tls !== false) {
    yield warning(['state', 'tls', 'insecure'], 'anybody can play this Redis, and read what is sent to it');
  }
  yield* checkPair(['state', 'tls'], tls);
}

function* checkCredentials({ url, username, password }: DraftState): Generator<Checked> {
  if (url === undefined) return;
  for (const [key, own, there] of [
    ['username', username, url.username],
    ['password', password, url.password],
  ] as const) {
    if (own !== undefined && there !== undefined) yield mistake(['state', key], 'there is one in the url as well');
  }
  if (password !== undefined || url.password !== undefined) return;
  if (url.username !== undefined) {
    yield mistake(['state', 'url'], 'a user without a password; a password alone is written redis://:PASSWORD@host');
  } else if (username !== undefined) yield mistake(['state', 'username'], 'needs a password');
}

function* checkSentinel({ url, sentinelUsername, sentinelPassword }: DraftState): Generator<Checked> {
  if (url !== undefined && url.kind !== 'sentinel') {
    const message = 'only with a url that begins with redis+sentinel or rediss+sentinel';
    if (sentinelUsername !== undefined) yield mistake(['state', 'sentinelUsername'], message);
    if (sentinelPassword !== undefined) yield mistake(['state', 'sentinelPassword'], message);
  } else if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    yield mistake(['state', 'sentinelUsername'], 'needs sentinelPassword');
  }
}
