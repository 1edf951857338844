import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** A request of a log, as far as it is played again. */
export interface Logged {
  /** Which line of the log it is, from 1. */
  readonly line: number;
  /** When it arrived; any origin. */
  readonly at: Millis;
  readonly client: string;
  /** How it ended for its client. */
  readonly end: End;
  /** What the upstream had of it; undefined where nothing was sent. */
  readonly attempts: Attempts | undefined;
  /** The upstream's name; empty where the log has none. */
  readonly upstream: string;
  readonly method: string;
  /** Without its query; `/` where the log does not tell. */
  readonly path: string;
  /** How long the upstream took for its answer; undefined where the log does not tell. */
  readonly service: Millis | undefined;
  /** How long the client waited; undefined where the log does not tell. */
  readonly took: Millis | undefined;
}

/** `refused`: by the upstream with a 429, or by a proxy for want of room. `gone`: the client did not wait for its answer. */
export type End = 'served' | 'refused' | 'failed' | 'gone';

/**
 * What the upstream made of an attempt. `refused`: 429. `failed`: 5xx, or no answer. `unclear`: one or the other, as it was sent
 * again. `unheard`: nobody knows, as the client had gone.
 */
export type Answer = 'passed' | 'refused' | 'failed' | 'unclear' | 'unheard';

export interface Attempts {
  /** ≥ 1 */
  readonly count: number;
  readonly last: Answer;
  /** Of those before the last, as many were let pass (it was asked for again because it was not ready)… */
  readonly passed: number;
  /** … and this is what came of the others. */
  readonly earlier: Answer;
  /** When the first and the last were sent, after its arrival. */
  readonly firstAfter: Millis;
  readonly lastAfter: Millis;
}

/** A request that was sent once, at its arrival. */
export const ONCE: Readonly<Record<Answer, Attempts>> = {
  passed: once('passed'),
  refused: once('refused'),
  failed: once('failed'),
  unclear: once('unclear'),
  unheard: once('unheard'),
};

function once(last: Answer): Attempts {
  return Object.freeze({ count: 1, last, passed: 0, earlier: last, firstAfter: 0, lastAfter: 0 });
}

/** What the upstream's own answer says of it. @param status 0 where there was none */
export function answerOf(status: number): 'passed' | 'refused' | 'failed' {
  if (status === 429) return 'refused';
  return status === 0 || status >= 500 ? 'failed' : 'passed';
}

/** How a request ended whose last attempt was answered so, and whose client was there. */
export function endOf(answer: 'passed' | 'refused' | 'failed'): End {
  return answer === 'passed' ? 'served' : answer;
}

/** A line that was no request, and why. */
export interface Skipped {
  readonly line: number;
  readonly why: string;
}

/** A log that is read from its beginning, once for each. */
export interface LogReader {
  /** Of all there is, what has been read: from 0 to 1. */
  readonly progress: number;
  /** Lines that were no requests. */
  readonly skipped: number;
  readonly firstSkipped: Skipped | undefined;
  /** Requests that were none to an upstream: without a route, or turned away for what they were. */
  readonly aside: number;
  /** Some of its requests more, in the order of the log; undefined at its end. */
  read(): readonly Logged[] | undefined;
}
