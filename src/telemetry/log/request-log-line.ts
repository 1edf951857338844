import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

export interface LineHead {
  readonly level: 'info' | 'warn';
  /** In ISO 8601. */
  readonly time: string;
  /** What all lines of its logger have, as JSON: `,"worker":2`, or nothing. */
  readonly bindings: string;
}

/**
 * The log's line of a request, as pino would write it of the same fields, newline included. A logger that takes any object costs
 * three times as much (docs/performance.md), and what is in here is known: no field of it is a secret.
 */
export function writeLine(head: LineHead, record: RequestRecord): string {
  let line = `{"level":"${head.level}","time":"${head.time}"${head.bindings},"id":${quote(record.id)}`;
  line += `,"route":${quote(record.route)}`;
  if (record.upstream !== '') line += `,"upstream":${quote(record.upstream)}`;
  line += `,"method":${quote(record.method)},"path":${quote(withoutQuery(record.path))}`;
  if (record.client !== '') line += `,"client":${quote(record.client)}`;
  line += `,"status":${record.status},"outcome":"${record.outcome}"`;
  if (record.reason !== undefined) line += `,"reason":${quote(record.reason)}`;
  if (record.cause !== undefined) line += `,"cause":${quote(record.cause)}`;
  if (record.polls !== undefined) line += `,"polls":${record.polls}`;
  line += `,"attempts":${record.attempts},"queuedMs":${tenths(record.queued)},"sleptMs":${tenths(record.slept)}`;
  line += `,"ms":${tenths(record.took)}`;
  if (record.retryAfter !== undefined) line += `,"retryAfter":${record.retryAfter}`;
  if (record.retryAfterFrom !== undefined) line += `,"retryAfterFrom":"${record.retryAfterFrom}"`;
  if (record.cut) line += ',"cut":true';
  if (record.mintedKey !== undefined) line += `,"mintedKey":"${record.mintedKey}"`;
  // As OpenTelemetry names it in logs that are not its own.
  if (record.traceId !== undefined) line += `,"trace_id":"${record.traceId}"`;
  if (record.carried !== undefined) {
    line += `,"bytesToUpstream":${record.carried.toUpstream},"bytesToClient":${record.carried.toClient}`;
  }
  if (record.wouldHave !== undefined) line += `,"wouldHave":"${tellDecision(record.wouldHave)}"`;
  if (record.wouldRetry !== undefined) line += `,"wouldRetry":${quote(record.wouldRetry)}`;
  return `${line},"msg":"request"}\n`;
}

/** `passed`, `queued`, or `refused over_share`. */
function tellDecision({ decision, why }: NonNullable<RequestRecord['wouldHave']>): string {
  return why === undefined ? decision : `${decision} ${why}`;
}

/** The record's path has no query; should one slip in, it stops here: queries carry secrets, and logs are kept. */
function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query === -1 ? path : path.slice(0, query);
}

/** Rounded to a tenth. Of whole numbers V8 has the text at hand; of others it makes it each time, digit by digit. */
function tenths(duration: Millis): string {
  const all = Math.round(duration * 10);
  if (!Number.isInteger(all) || all < 0 || all > MOST_TENTHS) return String(all / 10);
  const whole = Math.floor(all / 10);
  const tenth = all - 10 * whole;
  return tenth === 0 ? `${whole}` : `${whole}.${tenth}`;
}

/** As many as V8 takes for small everywhere; what is longer is left to the number. */
const MOST_TENTHS = 2 ** 31;

const PLAIN = /^[ !#-[\]-~\x7f-\ud7ff]*$/;

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** The time as logs have it, made anew only when another second, or another millisecond, has begun. */
export class IsoTime {
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
