import type { Checked, Written } from './checked.ts';
import { mistake, warning } from './checked.ts';
import type { DraftUpstream } from './draft.ts';
import type { Path } from './mistakes.ts';

/** Of HTTP itself, of the connection, or of who asks: in every write, or in none that reaches the upstream. */
const TAKEN: ReadonlySet<string> = new Set([
  'accept',
  'accept-charset',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cache-control',
  'connection',
  'cookie',
  'date',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'keep-alive',
  'origin',
  'pragma',
  'range',
  'referer',
  'te',
  'trailer',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
]);
const TAKEN_FAMILY = /^(?:content|if|proxy|sec|tidegate|x-forwarded)-/;

/** What is said of keys fits together, and says something. @param path of the upstream */
export function* checkIdempotency(
  path: Path,
  { idempotency, rateLimit }: Pick<DraftUpstream, 'idempotency' | 'rateLimit'>,
  written: Written,
): Generator<Checked> {
  if (idempotency === undefined) return;
  const { header, jsonField, generate } = idempotency;
  const own = [...path, 'idempotency'];
  if (header !== false) {
    const name = header.toLowerCase();
    const isTaken = TAKEN.has(name) || TAKEN_FAMILY.test(name);
    if (isTaken || name === rateLimit?.credentialHeader?.toLowerCase()) {
      const what = isTaken ? 'a header with a meaning of its own' : 'the credential of who asks';
      yield mistake([...own, 'header'], `is ${what}, not a key: each write would look safe to send again`);
    }
  }
  if (generate && jsonField !== undefined) {
    yield mistake([...own, 'generate'], 'goes with a header alone: whether a body has a key is known too late');
  } else if (generate && header === false) {
    yield mistake([...own, 'generate'], 'needs a header to write the key in: a body is never changed');
  }
  if (header !== false || jsonField !== undefined) return;
  for (const key of ['ttl', 'concurrent', 'replaysErrors']) {
    if (written([...own, key])) yield warning([...own, key], 'has no effect: no key is recognised', 'key');
  }
}
