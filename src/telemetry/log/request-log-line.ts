import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';

export interface RequestLineHeader {
  readonly level: 'info' | 'warn';
  /** In ISO 8601. */
  readonly time: string;
  /** The bindings of the logger as JSON: `,"worker":2`, or empty. */
  readonly bindings: string;
}

/**
 * The log line of a request, as pino would write it for the same fields, newline included. A general logger costs three times
 * as much (docs/performance.md); these fields are known, and none is a secret.
 */
export function formatRequestLine(head: RequestLineHeader, record: RequestRecord): string {
  let line = `{"level":"${head.level}","time":"${head.time}"${head.bindings},"id":${quoteJson(record.id)}`;
  if (record.xRequestId !== undefined) line += `,"xRequestId":${quoteJson(record.xRequestId)}`;
  line += `,"route":${quoteJson(record.route)}`;
  if (record.upstream !== '') line += `,"upstream":${quoteJson(record.upstream)}`;
  if (record.fallbackFrom !== undefined) line += `,"fallbackFrom":${quoteJson(record.fallbackFrom)}`;
  if (record.endpoint !== undefined) line += `,"endpoint":${quoteJson(record.endpoint)}`;
  line += `,"method":${quoteJson(record.method)},"path":${quoteJson(withoutQuery(record.path))}`;
  if (record.client !== '') line += `,"client":${quoteJson(record.client)}`;
  if (record.clientName !== undefined) line += `,"clientName":${quoteJson(record.clientName)}`;
  line += `,"status":${record.status},"outcome":"${record.outcome}"`;
  if (record.reason !== undefined) line += `,"reason":${quoteJson(record.reason)}`;
  if (record.cause !== undefined) line += `,"cause":${quoteJson(record.cause)}`;
  if (record.polls !== undefined) line += `,"polls":${record.polls}`;
  line += `,"attempts":${record.attempts},"queuedMs":${formatTenths(record.queueTime)},"sleptMs":${formatTenths(record.sleepTime)}`;
  line += `,"ms":${formatTenths(record.took)}`;
  if (record.retryAfterSeconds !== undefined) line += `,"retryAfter":${record.retryAfterSeconds}`;
  if (record.retryAfterFrom !== undefined) line += `,"retryAfterFrom":"${record.retryAfterFrom}"`;
  if (record.isTruncated) line += ',"cut":true';
  if (record.isAbandonedWrite === true) line += ',"unknown":true';
  if (record.mintedKey !== undefined) line += `,"mintedKey":"${record.mintedKey}"`;
  if (record.upstreamKey !== undefined) line += `,"upstreamKey":"${record.upstreamKey}"`;
  if (record.delivery !== undefined) line += `,"delivery":"${record.delivery}"`;
  if (record.write !== undefined) line += `,"write":"${record.write}"`;
  // As OpenTelemetry names it in logs that are not its own.
  if (record.traceId !== undefined) line += `,"trace_id":"${record.traceId}"`;
  if (record.spanId !== undefined) line += `,"span_id":"${record.spanId}"`;
  if (record.upgradeBytes !== undefined) {
    line += `,"bytesToUpstream":${record.upgradeBytes.toUpstream},"bytesToClient":${record.upgradeBytes.toClient}`;
  } else if (record.bytesIn !== undefined && record.bytesOut !== undefined) {
    line += `,"bytesIn":${record.bytesIn},"bytesOut":${record.bytesOut}`;
  }
  if (record.wouldHave !== undefined) line += `,"wouldHave":"${formatWouldHave(record.wouldHave)}"`;
  if (record.wouldRetry !== undefined) line += `,"wouldRetry":${quoteJson(record.wouldRetry)}`;
  return `${line},"msg":"request"}\n`;
}

/** `passed`, `queued`, or `refused over_share`. */
function formatWouldHave({ decision, why }: NonNullable<RequestRecord['wouldHave']>): string {
  return why === undefined ? decision : `${decision} ${why}`;
}

/** The path of a record has no query. Removes one nevertheless, because queries carry secrets. */
function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query === -1 ? path : path.slice(0, query);
}

/** Rounded to a tenth. V8 caches the text of whole numbers, but formats fractions anew each time, digit by digit. */
function formatTenths(duration: Millis): string {
  const all = Math.round(duration * 10);
  if (!Number.isInteger(all) || all < 0 || all > MAX_SMALL_TENTHS) return String(all / 10);
  const whole = Math.floor(all / 10);
  const tenth = all - 10 * whole;
  return tenth === 0 ? `${whole}` : `${whole}.${tenth}`;
}

/** The range of small integers of V8 on all platforms; longer durations are formatted as numbers. */
const MAX_SMALL_TENTHS = 2 ** 31;

const NEEDS_NO_ESCAPE = /^[ !#-[\]-~\x7f-\ud7ff]*$/;

function quoteJson(text: string): string {
  return NEEDS_NO_ESCAPE.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** The ISO 8601 time of log lines, formatted again only once a second, or once a millisecond. */
export class IsoTimeCache {
  #second = Number.NaN;
  #prefix = '';
  #last = Number.NaN;
  #text = '';

  /** @param now epoch milliseconds */
  at(now: Millis): string {
    if (now === this.#last) return this.#text;
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#prefix = new Date(1000 * second).toISOString().slice(0, -4);
    }
    this.#last = now;
    this.#text = `${this.#prefix}${String(now - 1000 * second).padStart(3, '0')}Z`;
    return this.#text;
  }
}
