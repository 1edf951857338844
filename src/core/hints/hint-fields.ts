/** The response fields that carry hints, and how each is read. */
import { parseDelay } from './parse-delay.ts';
import { honorsRetryAfter } from './parse-retry-after.ts';
import { readAge, readServerTime } from './server-time.ts';
import { forEachValue } from './single-value-field.ts';
import { clampDelay, maxDefined, parseDecimal } from './hint-numbers.ts';
import {
  makeQuotaCounters,
  parseBucketField,
  recordLimit,
  recordRemaining,
  recordReset,
  recordResetAfter,
  stricterQuota,
  type QuotaCounters,
} from './quota-fields.ts';
import type { Quota } from './hints.ts';
import type { Millis } from '../scalars.ts';
import { trimSpace } from '../http-semantics/list-field.ts';

/** The hint fields of one response, as collected so far. */
export interface HintFields {
  readonly status: number;
  /** Epoch ms by the response's own Date, so that the upstream's clock may be wrong; by ours if it has none. */
  readonly sentAt: () => Millis;
  retryAfter: Millis | undefined;
  retryAdvice: 'retry' | 'never' | undefined;
  reason: string | undefined;
  isEnvoyRateLimited: boolean;
  /** RateLimit and RateLimit-Policy; repeated fields make one list (RFC 9651 §3.1). */
  rateLimit: string;
  policies: string;
  readonly standard: QuotaCounters;
  readonly vendor: QuotaCounters;
  readonly dashed: QuotaCounters;
  readonly requests: QuotaCounters;
  /**
   * Quotas of LLM tokens by the prefix of their fields; created when a field reports one. They set no pace of requests. On a
   * rejection, an exhausted one says when to come back.
   */
  readonly tokens: Record<string, QuotaCounters>;
  /** How long the response has been in caches, in seconds (RFC 9111 §5.1). Computed on first use. */
  readonly age: () => number;
  bucket: Quota | undefined;
}

export const COUNTER_FAMILIES = ['standard', 'vendor', 'dashed', 'requests'] as const;

/**
 * @param headers names and values in turn, as received
 * @returns undefined if no field carries a hint
 */
export function collectHintFields(
  status: number,
  headers: readonly string[],
  wallClock: Millis,
): HintFields | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (findReader(headers[i] ?? '') !== undefined) return collectFrom(i, status, headers, wallClock);
  }
  return undefined;
}

function collectFrom(start: number, status: number, headers: readonly string[], wallClock: Millis): HintFields {
  let sentAt: Millis | undefined;
  let age: number | undefined;
  const fields: HintFields = {
    status,
    sentAt: () => (sentAt ??= readServerTime(headers, wallClock)),
    retryAfter: undefined,
    retryAdvice: undefined,
    reason: undefined,
    isEnvoyRateLimited: false,
    rateLimit: '',
    policies: '',
    standard: makeQuotaCounters(),
    vendor: makeQuotaCounters(),
    dashed: makeQuotaCounters(),
    requests: makeQuotaCounters(),
    tokens: {},
    age: () => (age ??= readAge(headers)),
    bucket: undefined,
  };
  for (let i = start; i + 1 < headers.length; i += 2) {
    findReader(headers[i] ?? '')?.(fields, headers[i + 1] ?? '');
  }
  return fields;
}

type FieldReader = (fields: HintFields, value: string) => void;

/** The three fields of one counter family: `prefix` + limit, remaining or reset + `suffix`. */
function quotaFieldReaders(
  prefix: string,
  family: (typeof COUNTER_FAMILIES)[number],
  suffix = '',
): Record<string, FieldReader> {
  return {
    [`${prefix}limit${suffix}`]: (fields, value) => recordLimit(fields[family], value),
    [`${prefix}remaining${suffix}`]: (fields, value) => recordRemaining(fields[family], value),
    [`${prefix}reset${suffix}`]: (fields, value) => recordReset(fields[family], value, fields.sentAt),
  };
}

function tokenFieldReaders(prefix: string, suffix = ''): Record<string, FieldReader> {
  const counters = ({ tokens }: HintFields): QuotaCounters => (tokens[prefix] ??= makeQuotaCounters());
  return {
    [`${prefix}remaining${suffix}`]: (fields, value) => recordRemaining(counters(fields), value),
    [`${prefix}reset${suffix}`]: (fields, value) => recordReset(counters(fields), value, fields.sentAt),
  };
}

/** A word fit for a log line and a metric label. */
const REASON = /^[ \t]*([\w.:-]{1,64})[ \t]*$/;

/** Every field that is read, by its name in lower case. */
const FIELD_READERS: ReadonlyMap<string, FieldReader> = new Map(
  Object.entries<FieldReader>({
    'retry-after': recordRetryAfterField,
    'x-retry-after': recordRetryAfterField,
    'retry-after-ms': recordMillisField,
    // Azure Cosmos DB and the AWS SDKs: milliseconds.
    'x-ms-retry-after-ms': recordMillisField,
    'x-amz-retry-after': recordMillisField,
    'grpc-retry-pushback-ms': readPushback,
    'stripe-should-retry': readShouldRetry,
    'stripe-rate-limited-reason': (fields, value) => {
      fields.reason ??= REASON.exec(value)?.[1];
    },
    'x-envoy-ratelimited': (fields) => {
      fields.isEnvoyRateLimited = true;
    },
    ratelimit: (fields, value) => {
      fields.rateLimit = joinFieldLines(fields.rateLimit, value);
    },
    'ratelimit-policy': (fields, value) => {
      fields.policies = joinFieldLines(fields.policies, value);
    },
    ...quotaFieldReaders('ratelimit-', 'standard'),
    ...quotaFieldReaders('x-ratelimit-', 'vendor'),
    // Okta and X; OpenAI; Anthropic.
    ...quotaFieldReaders('x-rate-limit-', 'dashed'),
    ...quotaFieldReaders('x-ratelimit-', 'requests', '-requests'),
    ...quotaFieldReaders('anthropic-ratelimit-requests-', 'requests'),
    ...tokenFieldReaders('x-ratelimit-', '-tokens'),
    ...tokenFieldReaders('anthropic-ratelimit-tokens-'),
    ...tokenFieldReaders('anthropic-ratelimit-input-tokens-'),
    ...tokenFieldReaders('anthropic-ratelimit-output-tokens-'),
    age: () => undefined, // makes a cached response count as a hint; its value is read on first use
    'ratelimit-reset-after': (fields, value) => recordResetAfter(fields.standard, value, fields.sentAt),
    'x-ratelimit-reset-after': (fields, value) => recordResetAfter(fields.vendor, value, fields.sentAt),
    'x-rate-limit-reset-after': (fields, value) => recordResetAfter(fields.dashed, value, fields.sentAt),
    'x-shopify-shop-api-call-limit': (fields, value) => {
      fields.bucket = stricterQuota(fields.bucket, parseBucketField(value));
    },
  }),
);

/** These say why the response is as it is; the others are times and limits, which soon say nothing any more. */
const LASTING_FIELDS: ReadonlySet<string> = new Set([
  'stripe-should-retry',
  'stripe-rate-limited-reason',
  'x-envoy-ratelimited',
]);

/** Whether a field is read as a time or a limit of the upstream. @param name in lower case */
export function isPacingField(name: string): boolean {
  return FIELD_READERS.has(name) && !LASTING_FIELDS.has(name);
}

/**
 * For each length of name, the first letters that a field of that length may have, one bit a letter. It rejects nearly
 * every header of nearly every response for two loads and a shift.
 */
const FIRST_LETTERS = new Int32Array(1 + Math.max(...Array.from(FIELD_READERS.keys(), (name) => name.length)));
for (const name of FIELD_READERS.keys()) {
  FIRST_LETTERS[name.length] = (FIRST_LETTERS[name.length] ?? 0) | letterBit(name);
}

/** The low five bits of a letter are the same in both cases. */
function letterBit(name: string): number {
  return 1 << (name.charCodeAt(0) & 31);
}

function findReader(name: string): FieldReader | undefined {
  if (((FIRST_LETTERS[name.length] ?? 0) & letterBit(name)) === 0) return undefined;
  return FIELD_READERS.get(name.toLowerCase());
}

function recordRetryAfter(fields: HintFields, delay: Millis): void {
  if (!honorsRetryAfter(fields.status)) return;
  fields.retryAfter = maxDefined(fields.retryAfter, clampDelay(delay));
}

/** A delay counts from when the response was made, so its age is subtracted; a date needs no correction. */
function recordRetryAfterField(fields: HintFields, line: string): void {
  forEachValue(line, (value) => {
    let isDate = false;
    const delay = parseDelay(value, () => {
      isDate = true;
      return fields.sentAt();
    });
    if (delay !== undefined) recordRetryAfter(fields, isDate ? delay : delay - 1000 * fields.age());
  });
}

function recordMillisField(fields: HintFields, value: string): void {
  const delay = parseDecimal(value);
  if (delay !== undefined) recordRetryAfter(fields, delay - 1000 * fields.age());
}

const WHOLE_NUMBER = /^[ \t]*\d+[ \t]*$/;

/**
 * gRPC's pushback (gRFC A6): a delay in whole ms; anything else, a negative number above all, means "do not retry". A
 * delay says when a retry may be sent, not whether to retry: the status decides that, so it sets no advice.
 */
function readPushback(fields: HintFields, value: string): void {
  if (!WHOLE_NUMBER.test(value)) fields.retryAdvice = 'never';
  else fields.retryAfter = maxDefined(fields.retryAfter, clampDelay(Number(value) - 1000 * fields.age()));
}

/** A veto overrides a permission, in either order. */
function readShouldRetry(fields: HintFields, value: string): void {
  const word = trimSpace(value).toLowerCase();
  if (word === 'false') fields.retryAdvice = 'never';
  else if (word === 'true') fields.retryAdvice ??= 'retry';
}

/** A field line without a value adds no member, and no comma. */
function joinFieldLines(list: string, more: string): string {
  if (trimSpace(more) === '') return list;
  return list === '' ? more : `${list}, ${more}`;
}
