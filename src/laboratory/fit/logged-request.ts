import type { Millis } from '../../core/scalars.ts';

/** A request of a log, with what the replay needs. */
export interface LoggedRequest {
  /** The line number, from 1. */
  readonly line: number;
  /** Arrival in ms, of any origin. */
  readonly at: Millis;
  readonly client: string;
  /** The result for its client. */
  readonly end: LoggedEnd;
  /** Its attempts at the upstream; undefined if nothing was sent. */
  readonly attempts: LoggedAttempts | undefined;
  /** The upstream's name; empty if the log has none. */
  readonly upstream: string;
  readonly method: string;
  /** The path without its query; `/` if the log has none. */
  readonly path: string;
  /** Time of the upstream in ms; undefined if the log has none. */
  readonly service: Millis | undefined;
  /** Time the client waited in ms; undefined if the log has none. */
  readonly took: Millis | undefined;
}

/**
 * `refused`: a 429 of the upstream, or a rejection by a proxy without capacity. `gone`: the client disconnected before
 * the response.
 */
export type LoggedEnd = 'served' | 'refused' | 'failed' | 'gone';

/**
 * The outcome of an attempt. `refused`: 429. `failed`: 5xx, or no response. `unclear`: one of the two, since it was retried.
 * `unheard`: unknown, since the client had disconnected.
 */
export type AttemptAnswer = 'passed' | 'refused' | 'failed' | 'unclear' | 'unheard';

export interface LoggedAttempts {
  /** ≥ 1 */
  readonly count: number;
  readonly last: AttemptAnswer;
  /** Attempts before the last that were accepted (polls of a result that was not ready)… */
  readonly passed: number;
  /** … and the outcome of the others. */
  readonly earlier: AttemptAnswer;
  /** When the first and the last were sent, in ms after arrival. */
  readonly firstAfter: Millis;
  readonly lastAfter: Millis;
}

/** The attempts of a request that was sent once, on arrival. */
export const SINGLE_ATTEMPT: Readonly<Record<AttemptAnswer, LoggedAttempts>> = {
  passed: singleAttempt('passed'),
  refused: singleAttempt('refused'),
  failed: singleAttempt('failed'),
  unclear: singleAttempt('unclear'),
  unheard: singleAttempt('unheard'),
};

function singleAttempt(last: AttemptAnswer): LoggedAttempts {
  return Object.freeze({ count: 1, last, passed: 0, earlier: last, firstAfter: 0, lastAfter: 0 });
}

/** The outcome by the upstream's status. @param status 0 without a response */
export function classifyStatus(status: number): 'passed' | 'refused' | 'failed' {
  if (status === 429) return 'refused';
  return status === 0 || status >= 500 ? 'failed' : 'passed';
}

/** The result of a request by its last outcome, for a client that stayed connected. */
export function endOfAnswer(answer: 'passed' | 'refused' | 'failed'): LoggedEnd {
  return answer === 'passed' ? 'served' : answer;
}

/** A line that is not a request, and why. */
export interface SkippedLine {
  readonly line: number;
  readonly why: string;
}

/** A reader of a log, from its beginning to its end, once. */
export interface LogReader {
  /** Share of the log that has been read, from 0 to 1. */
  readonly progress: number;
  /** Lines that were not requests. */
  readonly skipped: number;
  readonly firstSkipped: SkippedLine | undefined;
  /** Requests not meant for an upstream: without a route, or rejected for their content. */
  readonly aside: number;
  /** The next requests, in the order of the log; undefined at its end. */
  read(): readonly LoggedRequest[] | undefined;
}
