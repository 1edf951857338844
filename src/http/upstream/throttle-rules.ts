import { readDate, readHints } from '../../core/hints/read-hints.ts';
import { MAX_HINT, parseDecimal, plausibleDelay } from '../../core/hints/hint-numbers.ts';
import { readRetryAfter } from '../../core/hints/parse-retry-after.ts';
import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { Hints, Millis } from '../../core/exchange/attempt-outcome.ts';
import { isThrottled } from '../../core/exchange/attempt-outcome.ts';
import type { Field } from './error-codes.ts';
import { isReadable, MAX_LOOK } from './error-codes.ts';
import type { Glob } from '../request/glob.ts';
import { isJson } from '../headers/media-type.ts';
import { firstMatch } from '../request/match-path.ts';
import { firstValue } from '../headers/raw-headers.ts';

/** An answer, and what it answers. */
export interface Told {
  readonly method: string;
  /** As the upstream sees it, without a query. */
  readonly path: string;
  readonly status: number;
  /** Names and values in turn, as received. */
  readonly headers: readonly string[];
}

/** What answers that fit mean. Conditions that are undefined hold for all. */
export interface Rule {
  readonly statuses: ReadonlySet<number> | undefined;
  readonly methods: ReadonlySet<string> | undefined;
  readonly paths: readonly PathPattern[] | undefined;
  /** Names in lower case. */
  readonly headers: readonly (readonly [string, Glob])[];
  readonly reasons: readonly Glob[] | undefined;
  readonly codes: readonly Glob[] | undefined;
  readonly is: 'throttled' | 'lock' | 'answer' | undefined;
  readonly limit: string | readonly string[] | undefined;
  /** The first that is there counts; a time stands behind what the answer says itself. */
  readonly waits: readonly (WaitHeader | Millis)[];
}

export interface WaitHeader {
  /** In lower case. */
  readonly header: string;
  readonly format: 'seconds' | 'milliseconds' | 'epoch-seconds' | 'epoch-milliseconds' | 'http-date';
  readonly plus: Millis;
}

export interface ThrottleOptions {
  /** In lower case, as the others. */
  readonly reasonHeader: string | undefined;
  readonly verdictHeader: string | undefined;
  readonly codeFields: readonly Field[];
  readonly rules: readonly Rule[];
}

/** How one upstream says no: what its configuration adds to what is read of every answer (core/hints/read-hints.ts). */
export class Throttle {
  readonly codeFields: readonly Field[];
  readonly #options: ThrottleOptions;
  /** Of the answers that some rule may fit; undefined: of any status. */
  readonly #statuses: ReadonlySet<number> | undefined;

  constructor(options: ThrottleOptions) {
    this.codeFields = options.codeFields;
    this.#options = options;
    const statuses = options.rules.map((rule) => rule.statuses);
    this.#statuses = statuses.includes(undefined) ? undefined : new Set(statuses.flatMap((each) => [...(each ?? [])]));
  }

  /** Whether an answer of this status may mean something that `readHints` does not see. */
  concerns(status: number, hints: Hints): boolean {
    return status >= 400 || hints.quota?.remaining === 0 || this.#statuses?.has(status) !== false;
  }

  /**
   * What the answer says.
   * @param hints as `readHints` has them
   * @param codes of its body; undefined: nobody has looked yet
   * @returns undefined when its body would have to be looked into, never where `codes` are given
   */
  read(told: Told, hints: Hints, codes: readonly string[] | undefined, wallClock: Millis): Hints | undefined {
    const reason = this.#readReason(told) ?? hints.reason;
    const verdict = this.#readVerdict(told) ?? hints.verdict;
    const known = reason === hints.reason && verdict === hints.verdict ? hints : { ...hints, reason, verdict };
    for (const rule of this.#options.rules) {
      if (!fitsHead(rule, told, reason)) continue;
      const code = rule.codes === undefined ? undefined : codes?.find((each) => fits(rule.codes, each));
      if (rule.codes !== undefined && code === undefined) {
        if (codes === undefined && mayHold(told)) return undefined;
        continue;
      }
      return awaited(told, apply(rule, known, code), rule.waits, wallClock);
    }
    return known;
  }

  #readReason({ headers }: Told): string | undefined {
    const { reasonHeader } = this.#options;
    return reasonHeader === undefined ? undefined : wordOf(firstValue(headers, reasonHeader) ?? '');
  }

  #readVerdict({ headers }: Told): Hints['verdict'] {
    const { verdictHeader } = this.#options;
    const word = verdictHeader === undefined ? undefined : firstValue(headers, verdictHeader)?.trim().toLowerCase();
    return word === 'false' ? 'never' : word === 'true' ? 'retry' : undefined;
  }
}

function apply({ is, limit }: Rule, hints: Hints, code: string | undefined): Hints {
  return {
    ...hints,
    reason: hints.reason ?? (code === undefined ? undefined : wordOf(code)),
    lock: is === undefined ? hints.lock : is === 'lock',
    ...(is === 'throttled' || is === 'answer' ? { throttled: is === 'throttled' } : {}),
    ...(limit === undefined ? {} : { limit }),
  };
}

/** With when to come back, of a refusal, and of a quota that is spent. */
function awaited(told: Told, hints: Hints, waits: Rule['waits'], wallClock: Millis): Hints {
  const asked = readWait(told, waits, wallClock);
  const isRefusal = hints.lock || isThrottled(told.status, hints);
  // Of a status whose fields are not heeded otherwise, they count as of a 429.
  const refused = isRefusal && told.status !== 429 ? readHints(429, told.headers, wallClock) : hints;
  const usual = hints.retryAfter ?? refused.retryAfter;
  const quota = hints.quota ?? (hints.lock ? undefined : refused.quota);
  const isSpent = quota?.remaining === 0;
  // A quota that says when it is whole again says when to come back.
  const isSaid = usual !== undefined || (isSpent && quota.resetIn !== undefined);
  const retryAfter = isRefusal ? (asked ?? (isSaid ? usual : waits.find(isTime))) : usual;
  const resetIn = isSpent && asked !== undefined ? Math.min(asked, MAX_HINT) : quota?.resetIn;
  if (retryAfter === hints.retryAfter && quota === hints.quota && resetIn === quota?.resetIn) return hints;
  return {
    ...hints,
    retryAfter: retryAfter === undefined ? undefined : Math.min(retryAfter, MAX_HINT),
    quota: quota === undefined ? undefined : { ...quota, resetIn },
  };
}

function isTime(wait: WaitHeader | Millis): wait is Millis {
  return typeof wait === 'number';
}

/** By the first of these headers that is there. */
function readWait({ headers }: Told, waits: Rule['waits'], wallClock: Millis): Millis | undefined {
  for (const wait of waits) {
    const value = isTime(wait) ? undefined : firstValue(headers, wait.header);
    const delay = isTime(wait) || value === undefined ? undefined : readDelay(value, wait.format, headers, wallClock);
    if (delay !== undefined && !isTime(wait)) return delay + wait.plus;
  }
  return undefined;
}

function fitsHead(rule: Rule, { method, path, status, headers }: Told, reason: string | undefined): boolean {
  if (rule.statuses?.has(status) === false || rule.methods?.has(method) === false) return false;
  if (rule.reasons !== undefined && (reason === undefined || !fits(rule.reasons, reason))) return false;
  if (rule.paths !== undefined && firstMatch(rule.paths, segmentsOf(path)) === undefined) return false;
  return rule.headers.every(([name, isMeant]) => {
    const value = firstValue(headers, name);
    return value !== undefined && isMeant(value.trim());
  });
}

function fits(globs: readonly Glob[] | undefined, word: string): boolean {
  return globs?.some((isMeant) => isMeant(word)) ?? true;
}

/** Whether its body may be one that codes can be read of. */
function mayHold({ method, status, headers }: Told): boolean {
  if (method === 'HEAD' || status === 204 || status === 205 || status === 304) return false;
  if (!isJson(firstValue(headers, 'content-type') ?? '')) return false;
  const length = firstValue(headers, 'content-length');
  if (length !== undefined && !(Number(length) > 0 && Number(length) <= MAX_LOOK)) return false;
  return isReadable(firstValue(headers, 'content-encoding') ?? '');
}

function readDelay(
  value: string,
  format: WaitHeader['format'],
  headers: readonly string[],
  wallClock: Millis,
): Millis | undefined {
  if (format === 'http-date') return readRetryAfter(value, () => readDate(headers, wallClock));
  const number = parseDecimal(value);
  if (number === undefined) return undefined;
  switch (format) {
    case 'seconds':
      return plausibleDelay(number * 1000);
    case 'milliseconds':
      return plausibleDelay(number);
    case 'epoch-seconds':
      return plausibleDelay(number * 1000 - readDate(headers, wallClock));
    case 'epoch-milliseconds':
      return plausibleDelay(number - readDate(headers, wallClock));
  }
}

/** Fit for a log line and a metric's label. */
function wordOf(text: string): string | undefined {
  return /^[ \t]*([\w.:-]{1,64})[ \t]*$/.exec(text)?.[1];
}
