import { readDate } from './hints.ts';
import { parseDecimal, plausibleDelay } from './hints/numbers.ts';
import {
  emptyTally,
  noteLimit,
  noteRemaining,
  noteReset,
  noteResetAfter,
  readRateLimit,
  tallyToQuota,
} from './hints/quota.ts';
import type { Hints, Millis, Quota } from './types.ts';

/** Fields that give a delay in milliseconds: of OpenAI and Azure, Azure Cosmos DB, and the AWS SDKs. */
const MILLISECONDS: ReadonlySet<string> = new Set(['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after']);

/**
 * How long a 429 or a 503 without Retry-After asks its client to wait: the longest of what its other fields say, 0 where they
 * say nothing, at most 31 days. Hints are bounded to five minutes, after which the upstream is asked again; a client is not
 * given less than the upstream has asked for.
 * @param headers names and values in turn, as received
 * @param wallClock epoch ms, used where the answer has no usable Date
 */
export function impliedWait(headers: readonly string[], hints: Hints, wallClock: Millis): Millis {
  const sentAt = (): Millis => readDate(headers, wallClock);
  const standard = emptyTally();
  const vendor = emptyTally();
  let rateLimit = '';
  let policies = '';
  let wait = Math.max(hints.retryAfter ?? 0, whileSpent(hints.quota));
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase() ?? '';
    const value = headers[i + 1] ?? '';
    if (MILLISECONDS.has(name)) wait = Math.max(wait, plausibleDelay(parseDecimal(value) ?? 0) ?? 0);
    else if (name === 'ratelimit') rateLimit = join(rateLimit, value);
    else if (name === 'ratelimit-policy') policies = join(policies, value);
    else if (name === 'x-ratelimit-reset-after') noteResetAfter(vendor, value);
    else {
      const tally = name.startsWith('ratelimit-') ? standard : name.startsWith('x-ratelimit-') ? vendor : undefined;
      if (tally === undefined) continue;
      if (name.endsWith('ratelimit-limit')) noteLimit(tally, value);
      else if (name.endsWith('ratelimit-remaining')) noteRemaining(tally, value);
      else if (name.endsWith('ratelimit-reset')) noteReset(tally, value, sentAt);
    }
  }
  // A lock is no spent quota: it has nothing to do with the window.
  const isSpent = !hints.lock;
  const quotas = [
    rateLimit === '' ? undefined : readRateLimit(rateLimit, policies),
    tallyToQuota(standard, isSpent),
    tallyToQuota(vendor, isSpent),
  ];
  return quotas.reduce((longest, quota) => Math.max(longest, whileSpent(quota)), wait);
}

function whileSpent(quota: Quota | undefined): Millis {
  return quota?.remaining === 0 ? (quota.resetIn ?? 0) : 0;
}

function join(list: string, more: string): string {
  return list === '' ? more : `${list}, ${more}`;
}
