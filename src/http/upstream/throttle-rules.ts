import { readAge, readServerTime } from '../../core/hints/server-time.ts';
import { readHints } from '../../core/hints/read-hints.ts';
import { MAX_HINTED_DELAY, parseDecimal, clampDelay } from '../../core/hints/hint-numbers.ts';
import { parseRetryAfter } from '../../core/hints/parse-retry-after.ts';
import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { boundRetryAfter, statedRetryAfter, type Hints } from '../../core/hints/hints.ts';
import type { Millis } from '../../core/scalars.ts';
import { isThrottled } from '../../core/exchange/attempt-outcome.ts';
import type { JsonFieldPath } from './error-codes.ts';
import { isDecodable, MAX_PREVIEW_BYTES } from './error-codes.ts';
import type { Glob } from '../request/glob.ts';
import { isJsonType } from '../headers/media-type.ts';
import { firstMatchingPattern } from '../request/match-path.ts';
import { firstHeaderValue } from '../headers/raw-headers.ts';
import { trimSpace } from '../../core/http-semantics/list-field.ts';

/** A response and its request. */
export interface ThrottleInput {
  readonly method: string;
  /** As sent to the upstream, without a query. */
  readonly path: string;
  readonly status: number;
  /** Names and values in turn, as received. */
  readonly headers: readonly string[];
}

/** What matching responses mean. An undefined condition matches every response. */
export interface ThrottleRule {
  readonly statuses: ReadonlySet<number> | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly paths: readonly PathPattern[] | undefined;
  /** Names in lower case. */
  readonly headers: readonly (readonly [string, Glob])[];
  readonly reasons: readonly Glob[] | undefined;
  readonly codes: readonly Glob[] | undefined;
  readonly meaning: 'throttled' | 'lock' | 'answer' | undefined;
  readonly limit: string | readonly string[] | undefined;
  /** Where to read the wait: the first header that is present counts. A fixed time counts only if the response names none. */
  readonly waitSources: readonly (WaitHeader | Millis)[];
}

export interface WaitHeader {
  /** In lower case. */
  readonly header: string;
  readonly format: 'seconds' | 'milliseconds' | 'epoch-seconds' | 'epoch-milliseconds' | 'http-date';
  readonly plus: Millis;
}

export interface ThrottleRulesOptions {
  /** In lower case. */
  readonly reasonHeader: string | undefined;
  readonly verdictHeader: string | undefined;
  readonly limitHeader: string | undefined;
  /** The names of limits by the value of `limitHeader`. Any other value names a limit that is not configured. */
  readonly limitNames: ReadonlyMap<string, string>;
  readonly codeFields: readonly JsonFieldPath[];
  readonly rules: readonly ThrottleRule[];
}

/** One upstream's `throttle` rules, added to the hints that are read from every response (core/hints/read-hints.ts). */
export class ThrottleRules {
  readonly codeFields: readonly JsonFieldPath[];
  /** The headers that are read as times or limits, in lower case. */
  readonly pacingHeaders: ReadonlySet<string>;
  readonly #options: ThrottleRulesOptions;
  /** Statuses that some rule may match; undefined: any. */
  readonly #statuses: ReadonlySet<number> | undefined;

  constructor(options: ThrottleRulesOptions) {
    this.codeFields = options.codeFields;
    const waits = options.rules.flatMap(({ waitSources }) => waitSources);
    const waitHeaders = waits.flatMap((wait) => (isFixedDelay(wait) ? [] : [wait.header]));
    const { limitHeader } = options;
    this.pacingHeaders = new Set(limitHeader === undefined ? waitHeaders : [...waitHeaders, limitHeader]);
    this.#options = options;
    const statuses = options.rules.map((rule) => rule.statuses);
    this.#statuses = statuses.includes(undefined) ? undefined : new Set(statuses.flatMap((each) => [...(each ?? [])]));
  }

  /** Whether the rules may add to what `readHints` finds in a response of this status. */
  appliesTo(status: number, hints: Hints): boolean {
    const isSpent = hints.quota?.remaining === 0;
    const mayNameLimit = hints.quota !== undefined && this.#options.limitHeader !== undefined;
    return status >= 400 || isSpent || mayNameLimit || this.#statuses?.has(status) !== false;
  }

  /**
   * The hints of a response, with what the first matching rule adds.
   * @param hints as `readHints` returns them
   * @param codes error codes in the body; undefined if it was not read
   * @returns undefined if the body must be read to decide; never undefined when `codes` are given
   */
  classify(
    response: ThrottleInput,
    hints: Hints,
    codes: readonly string[] | undefined,
    wallClock: Millis,
  ): Hints | undefined {
    const reason = this.#readReason(response) ?? hints.reason;
    const verdict = this.#readVerdict(response) ?? hints.retryAdvice;
    const named = this.#readLimit(response, hints);
    const isUnchanged = named === undefined && reason === hints.reason && verdict === hints.retryAdvice;
    const known = isUnchanged ? hints : { ...hints, reason, retryAdvice: verdict, ...named };
    for (const rule of this.#options.rules) {
      if (!matchesHead(rule, response, reason)) continue;
      const code = rule.codes === undefined ? undefined : codes?.find((each) => matchesAny(rule.codes, each));
      if (rule.codes !== undefined && code === undefined) {
        if (codes === undefined && mayContainCodes(response)) return undefined;
        continue;
      }
      return withRetryAfterHint(response, applyRule(rule, known, code), rule.waitSources, wallClock);
    }
    return known;
  }

  #readReason({ headers }: ThrottleInput): string | undefined {
    const { reasonHeader } = this.#options;
    return reasonHeader === undefined ? undefined : singleWord(firstHeaderValue(headers, reasonHeader) ?? '');
  }

  #readVerdict({ headers }: ThrottleInput): Hints['retryAdvice'] {
    const { verdictHeader } = this.#options;
    if (verdictHeader === undefined) return undefined;
    const word = trimSpace(firstHeaderValue(headers, verdictHeader) ?? '').toLowerCase();
    return word === 'false' ? 'never' : word === 'true' ? 'retry' : undefined;
  }

  /** A rejection with some of the quota left has another cause than the limit of that quota. */
  #readLimit({ headers }: ThrottleInput, { quota }: Hints): Pick<Hints, 'limit' | 'quotaLimit'> | undefined {
    const { limitHeader, limitNames } = this.#options;
    const value = limitHeader === undefined ? '' : trimSpace(firstHeaderValue(headers, limitHeader) ?? '');
    if (value === '') return undefined;
    const limit = limitNames.get(value) ?? [];
    return quota === undefined || quota.remaining === 0 ? { limit, quotaLimit: limit } : { quotaLimit: limit };
  }
}

function applyRule({ meaning, limit }: ThrottleRule, hints: Hints, code: string | undefined): Hints {
  return {
    ...hints,
    reason: hints.reason ?? (code === undefined ? undefined : singleWord(code)),
    lock: meaning === undefined ? hints.lock : meaning === 'lock',
    ...(meaning === 'throttled' || meaning === 'answer' ? { throttled: meaning === 'throttled' } : {}),
    ...(limit === undefined ? {} : { limit }),
  };
}

/** Adds when to retry to a rejection, and to a spent quota. */
function withRetryAfterHint(
  response: ThrottleInput,
  hints: Hints,
  waits: ThrottleRule['waitSources'],
  wallClock: Millis,
): Hints {
  const ruleDelay = readRuleDelay(response, waits, wallClock);
  const isRefusal = hints.lock || isThrottled(response.status, hints);
  // Other statuses' Retry-After and RateLimit fields are ignored by default; for a rejection they count as those of a 429.
  const refused = isRefusal && response.status !== 429 ? readHints(429, response.headers, wallClock) : hints;
  const hintDelay = statedRetryAfter(hints) ?? statedRetryAfter(refused);
  const quota = hints.quota ?? (hints.lock ? undefined : refused.quota);
  const isSpent = quota?.remaining === 0;
  // A quota with a reset time says when to retry.
  const hasDelay = hintDelay !== undefined || (isSpent && quota.resetIn !== undefined);
  const retryAfter = isRefusal ? (ruleDelay ?? (hasDelay ? hintDelay : waits.find(isFixedDelay))) : hintDelay;
  const resetIn = isSpent && ruleDelay !== undefined ? Math.min(ruleDelay, MAX_HINTED_DELAY) : quota?.resetIn;
  if (retryAfter === statedRetryAfter(hints) && quota === hints.quota && resetIn === quota?.resetIn) return hints;
  const { unboundedRetryAfterMs: _, ...rest } = hints;
  return boundRetryAfter({
    ...rest,
    retryAfterMs: retryAfter,
    quota: quota === undefined ? undefined : { ...quota, resetIn },
  });
}

function isFixedDelay(wait: WaitHeader | Millis): wait is Millis {
  return typeof wait === 'number';
}

/** The wait named by the first of these headers that is present. */
function readRuleDelay(
  { headers }: ThrottleInput,
  waits: ThrottleRule['waitSources'],
  wallClock: Millis,
): Millis | undefined {
  for (const wait of waits) {
    const value = isFixedDelay(wait) ? undefined : firstHeaderValue(headers, wait.header);
    const delay =
      isFixedDelay(wait) || value === undefined ? undefined : readDelay(value, wait.format, headers, wallClock);
    if (delay !== undefined && !isFixedDelay(wait)) return delay + wait.plus;
  }
  return undefined;
}

function matchesHead(
  rule: ThrottleRule,
  { method, path, status, headers }: ThrottleInput,
  reason: string | undefined,
): boolean {
  if (rule.statuses?.has(status) === false || rule.methods?.has(method) === false) return false;
  if (rule.reasons !== undefined && (reason === undefined || !matchesAny(rule.reasons, reason))) return false;
  if (rule.paths !== undefined && firstMatchingPattern(rule.paths, segmentsOf(path)) === undefined) return false;
  return rule.headers.every(([name, matches]) => {
    const value = firstHeaderValue(headers, name);
    return value !== undefined && matches(trimSpace(value));
  });
}

function matchesAny(globs: readonly Glob[] | undefined, word: string): boolean {
  return globs?.some((matches) => matches(word)) ?? true;
}

/** Whether the body may contain error codes that can be read. */
function mayContainCodes({ method, status, headers }: ThrottleInput): boolean {
  if (method === 'HEAD' || status === 204 || status === 205 || status === 304) return false;
  if (!isJsonType(firstHeaderValue(headers, 'content-type') ?? '')) return false;
  const length = firstHeaderValue(headers, 'content-length');
  if (length !== undefined && !(Number(length) > 0 && Number(length) <= MAX_PREVIEW_BYTES)) return false;
  return isDecodable(firstHeaderValue(headers, 'content-encoding') ?? '');
}

function readDelay(
  value: string,
  format: WaitHeader['format'],
  headers: readonly string[],
  wallClock: Millis,
): Millis | undefined {
  if (format === 'http-date') return parseRetryAfter(value, () => readServerTime(headers, wallClock));
  const number = parseDecimal(value);
  if (number === undefined) return undefined;
  switch (format) {
    case 'seconds':
      return clampDelay(1000 * (number - readAge(headers)));
    case 'milliseconds':
      return clampDelay(number - 1000 * readAge(headers));
    case 'epoch-seconds':
      return clampDelay(number * 1000 - readServerTime(headers, wallClock));
    case 'epoch-milliseconds':
      return clampDelay(number - readServerTime(headers, wallClock));
  }
}

/** A word that is fit for a log line and a metric label; undefined for other text. */
function singleWord(text: string): string | undefined {
  return /^[ \t]*([\w.:-]{1,64})[ \t]*$/.exec(text)?.[1];
}
