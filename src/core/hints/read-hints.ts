/**
 * Reads what an upstream's answer says about pacing, into one normal form. Hints beat learning, so they are read with suspicion: a
 * value that is negative or unparsable is ignored, one that is too large is clamped, and of two values the stricter counts.
 */
import { parseDelay } from './parse-delay.ts';
import { eachValue } from './single-value-field.ts';
import { parseHttpDate } from './http-date.ts';
import { larger, MAX_HINT, parseDecimal, plausibleDelay } from './hint-numbers.ts';
import {
  boundStop,
  emptyTally,
  noteLimit,
  noteRemaining,
  noteReset,
  noteResetAfter,
  readBucket,
  readRateLimit,
  type Tally,
  tallyToQuota,
  tighter,
} from './quota-fields.ts';
import { heedsRetryAfter } from './parse-retry-after.ts';
import { type Hints, type Millis, NO_HINTS, type Quota } from '../exchange/attempt-outcome.ts';

export { formatRetryAfter } from './format-retry-after.ts';
export { MAX_HINT } from './hint-numbers.ts';

/** What has been read of one answer so far. */
interface Reading {
  readonly status: number;
  /** Epoch ms by the answer's own Date, so that the upstream's clock may be wrong; by ours where it tells none. */
  readonly sentAt: () => Millis;
  retryAfter: Millis | undefined;
  verdict: 'retry' | 'never' | undefined;
  reason: string | undefined;
  envoy: boolean;
  /** RateLimit and RateLimit-Policy; repeated fields make one list (RFC 9651 §3.1). */
  rateLimit: string;
  policies: string;
  readonly standard: Tally;
  readonly vendor: Tally;
  readonly dashed: Tally;
  readonly requests: Tally;
  /** Of tokens, by their kind: made where one is told of. */
  readonly tokens: Partial<Record<TokenKind, Tally>>;
  /** In seconds: how long it has been in caches (RFC 9111 §5.1). Read where it is needed. */
  readonly age: () => number;
  bucket: Quota | undefined;
}

type ReadField = (reading: Reading, value: string) => void;

/** Quotas of tokens set no pace of requests. On a refusal, one that is spent says when to come back. */
type TokenKind = 'all' | 'input' | 'output';

const TALLIES = ['standard', 'vendor', 'dashed', 'requests'] as const;

/** Three fields of one family, each with this before and behind its word. */
function countersOf(before: string, family: (typeof TALLIES)[number], behind = ''): Record<string, ReadField> {
  return {
    [`${before}limit${behind}`]: (r, value) => noteLimit(r[family], value),
    [`${before}remaining${behind}`]: (r, value) => noteRemaining(r[family], value),
    [`${before}reset${behind}`]: (r, value) => noteReset(r[family], value, r.sentAt),
  };
}

function tokenCountersOf(before: string, kind: TokenKind, behind = ''): Record<string, ReadField> {
  const tally = ({ tokens }: Reading): Tally => (tokens[kind] ??= emptyTally());
  return {
    [`${before}remaining${behind}`]: (r, value) => noteRemaining(tally(r), value),
    [`${before}reset${behind}`]: (r, value) => noteReset(tally(r), value, r.sentAt),
  };
}

/** A word fit for a log line and a metric's label. */
const REASON = /^[ \t]*([\w.:-]{1,64})[ \t]*$/;

/** Every field that is read, by its name in lower case. */
const FIELDS: ReadonlyMap<string, ReadField> = new Map(
  Object.entries<ReadField>({
    'retry-after': noteRetryAfterField,
    'x-retry-after': noteRetryAfterField,
    'retry-after-ms': (r, value) => noteRetryAfter(r, parseDecimal(value)),
    // Azure Cosmos DB and the AWS SDKs: milliseconds.
    'x-ms-retry-after-ms': (r, value) => noteRetryAfter(r, parseDecimal(value)),
    'x-amz-retry-after': (r, value) => noteRetryAfter(r, parseDecimal(value)),
    'grpc-retry-pushback-ms': readPushback,
    'stripe-should-retry': readShouldRetry,
    'stripe-rate-limited-reason': (r, value) => {
      r.reason ??= REASON.exec(value)?.[1];
    },
    'x-envoy-ratelimited': (r) => {
      r.envoy = true;
    },
    ratelimit: (r, value) => {
      r.rateLimit = join(r.rateLimit, value);
    },
    'ratelimit-policy': (r, value) => {
      r.policies = join(r.policies, value);
    },
    ...countersOf('ratelimit-', 'standard'),
    ...countersOf('x-ratelimit-', 'vendor'),
    // Okta and X; OpenAI; Anthropic.
    ...countersOf('x-rate-limit-', 'dashed'),
    ...countersOf('x-ratelimit-', 'requests', '-requests'),
    ...countersOf('anthropic-ratelimit-requests-', 'requests'),
    ...tokenCountersOf('x-ratelimit-', 'all', '-tokens'),
    ...tokenCountersOf('anthropic-ratelimit-tokens-', 'all'),
    ...tokenCountersOf('anthropic-ratelimit-input-tokens-', 'input'),
    ...tokenCountersOf('anthropic-ratelimit-output-tokens-', 'output'),
    age: () => undefined, // read where it is needed
    'ratelimit-reset-after': (r, value) => noteResetAfter(r.standard, value, r.sentAt),
    'x-ratelimit-reset-after': (r, value) => noteResetAfter(r.vendor, value, r.sentAt),
    'x-rate-limit-reset-after': (r, value) => noteResetAfter(r.dashed, value, r.sentAt),
    'x-shopify-shop-api-call-limit': (r, value) => {
      r.bucket = tighter(r.bucket, readBucket(value));
    },
  }),
);

/**
 * For each length of name, the first letters that a field of that length may have, one bit a letter. Nearly every
 * header of nearly every answer ends here, at the price of two loads and a shift.
 */
const FIRST_LETTERS = new Int32Array(1 + Math.max(...Array.from(FIELDS.keys(), (name) => name.length)));
for (const name of FIELDS.keys()) FIRST_LETTERS[name.length] = (FIRST_LETTERS[name.length] ?? 0) | letterBit(name);

/** The low five bits of a letter are the same in both cases. */
function letterBit(name: string): number {
  return 1 << (name.charCodeAt(0) & 31);
}

function findField(name: string): ReadField | undefined {
  if (((FIRST_LETTERS[name.length] ?? 0) & letterBit(name)) === 0) return undefined;
  return FIELDS.get(name.toLowerCase());
}

/**
 * What the head of an answer says about pacing. Retry-After counts on the statuses of `heedsRetryAfter`, a quota on
 * all. `retryAfter` is within [0, MAX_HINT], so is a spent quota's `resetIn`; with something left `resetIn` is the time
 * told, as is `window`: both at most 31 days. `remaining` is a whole number, `limit` one ≥ 1. Never throws, whatever
 * the bytes.
 * @param headers names and values in turn, as received: any case, duplicates possible
 * @param wallClock epoch ms by our clock; used only where the answer has no usable Date of its own
 * @returns NO_HINTS itself when nothing usable was said
 */
export function readHints(status: number, headers: readonly string[], wallClock: Millis): Hints {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (findField(headers[i] ?? '') !== undefined) return conclude(readFrom(i, status, headers, wallClock));
  }
  return NO_HINTS;
}

function readFrom(start: number, status: number, headers: readonly string[], wallClock: Millis): Reading {
  let sentAt: Millis | undefined;
  let age: number | undefined;
  const reading: Reading = {
    status,
    sentAt: () => (sentAt ??= readDate(headers, wallClock)),
    retryAfter: undefined,
    verdict: undefined,
    reason: undefined,
    envoy: false,
    rateLimit: '',
    policies: '',
    standard: emptyTally(),
    vendor: emptyTally(),
    dashed: emptyTally(),
    requests: emptyTally(),
    tokens: {},
    age: () => (age ??= readAge(headers)),
    bucket: undefined,
  };
  for (let i = start; i + 1 < headers.length; i += 2) {
    findField(headers[i] ?? '')?.(reading, headers[i + 1] ?? '');
  }
  return reading;
}

function conclude(reading: Reading): Hints {
  const { verdict } = reading;
  const isCached = reading.age() > 0;
  const reason = reading.reason ?? (reading.envoy ? 'envoy' : undefined);
  const lock = reading.reason !== undefined && isLock(reading.reason);
  const quota = quotaIn(reading, reading.status === 429 && reading.retryAfter === undefined && !lock);
  const retryAfter = notBefore(reading, quota);
  const isSaid = retryAfter !== undefined || verdict !== undefined || reason !== undefined || quota !== undefined;
  if (!isSaid && !isCached) return NO_HINTS;
  return {
    retryAfter: retryAfter === undefined ? undefined : Math.min(retryAfter, MAX_HINT),
    quota: quota === undefined ? undefined : boundStop(quota),
    verdict,
    reason,
    lock,
    ...(isCached ? { isCached } : {}),
  };
}

/**
 * One decision from both: a Retry-After ends where the quota that is told beside it has not yet, and nothing passes before that.
 * Alone, a spent quota is a stop of its own.
 */
function notBefore({ retryAfter }: Reading, quota: Quota | undefined): Millis | undefined {
  if (retryAfter === undefined || quota?.remaining !== 0) return retryAfter;
  return larger(retryAfter, quota.resetIn);
}

/** The tightest of all that are told. What a cache tells was so when it was made: of now it says nothing. */
function quotaIn(reading: Reading, isSpent: boolean): Quota | undefined {
  if (reading.age() > 0) return undefined;
  let quota = reading.rateLimit === '' ? undefined : readRateLimit(reading.rateLimit, reading.policies);
  for (const family of TALLIES) quota = tighter(quota, tallyToQuota(reading[family], isSpent));
  quota = tighter(quota, reading.bucket);
  if (!isSpent) return quota;
  for (const tally of Object.values(reading.tokens)) {
    if (tally.remaining === 0) quota = tighter(quota, tallyToQuota(tally, false));
  }
  return quota;
}

/**
 * How long an answer asks its client to wait, whichever of its fields says so: the longest, at most 31 days, 0 where none does.
 * Hints are bounded to five minutes, after which the upstream is asked again; a client is not given less than the upstream
 * has asked for. A lock is no spent quota: it has nothing to do with the window.
 * @param headers names and values in turn, as received
 * @param hints as `readHints` has them, or as rules of the configuration say
 */
export function readWait(headers: readonly string[], hints: Hints, wallClock: Millis): Millis {
  const reading = readFrom(0, 429, headers, wallClock);
  const quota = quotaIn(reading, !hints.lock);
  return Math.max(hints.retryAfter ?? 0, whileSpent(hints.quota), reading.retryAfter ?? 0, whileSpent(quota));
}

function whileSpent(quota: Quota | undefined): Millis {
  return quota?.remaining === 0 ? (quota.resetIn ?? 0) : 0;
}

/** Whether a reason is Stripe's word for a limit on one object, say the updates of one PaymentIntent. */
export function isLock(reason: string): boolean {
  return reason.toLowerCase() === 'resource-specific';
}

function noteRetryAfter(reading: Reading, delay: Millis | undefined): void {
  if (delay === undefined || !heedsRetryAfter(reading.status)) return;
  reading.retryAfter = larger(reading.retryAfter, plausibleDelay(delay));
}

/** Seconds count from when the answer was made, as a date does by itself. */
function noteRetryAfterField(reading: Reading, field: string): void {
  eachValue(field, (value) => {
    let isDate = false;
    const delay = parseDelay(value, () => {
      isDate = true;
      return reading.sentAt();
    });
    if (delay !== undefined) noteRetryAfter(reading, isDate ? delay : delay - 1000 * reading.age());
  });
}

const WHOLE = /^[ \t]*\d+[ \t]*$/;

/**
 * gRPC's pushback (gRFC A6): a delay in whole ms; anything else, a negative one above all, means "do not retry". A
 * delay says when a retry may go, not that one is wanted: the status decides that, so it gives no verdict.
 */
function readPushback(reading: Reading, value: string): void {
  if (WHOLE.test(value)) reading.retryAfter = larger(reading.retryAfter, plausibleDelay(Number(value)));
  else reading.verdict = 'never';
}

/** A veto outweighs leave, in whatever order they come. */
function readShouldRetry(reading: Reading, value: string): void {
  const word = value.trim().toLowerCase();
  if (word === 'false') reading.verdict = 'never';
  else if (word === 'true') reading.verdict ??= 'retry';
}

/**
 * The time of now by the clock of the upstream, in epoch ms: its Date, and the Age that caches have added (RFC 9111 §4.2.3);
 * `wallClock` where it does not say.
 */
export function readDate(headers: readonly string[], wallClock: Millis): Millis {
  let date: Millis | undefined;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === 'date') date ??= parseHttpDate((headers[i + 1] ?? '').trim(), wallClock);
  }
  if (date === undefined) return wallClock;
  const sentAt = date + 1000 * readAge(headers);
  // A Date is cut to the second. Our clock is not, and where it agrees it holds nobody beyond a date that the client may read itself.
  return wallClock >= sentAt && wallClock < sentAt + CUT_AND_UNDER_WAY ? wallClock : sentAt;
}

/** What a Date is cut by at most, and the answer's way. */
const CUT_AND_UNDER_WAY: Millis = 1250;

/** For how long an answer has been in caches, in seconds; of several the largest. */
export function readAge(headers: readonly string[]): number {
  let age = 0;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 3 || name.toLowerCase() !== 'age') continue;
    eachValue(headers[i + 1] ?? '', (value) => {
      age = larger(age, parseDecimal(value)) ?? 0;
    });
  }
  return age;
}

/** A line without a value adds no member, and no comma. */
function join(list: string, more: string): string {
  if (more.trim() === '') return list;
  return list === '' ? more : `${list}, ${more}`;
}
