import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** What the practice server does with one request. */
export interface Act {
  /** The time that the work takes, or the wait before an answer without work. */
  readonly delay: Millis;
  /** The route does its work (echoes, charges) before the ending. */
  readonly works: boolean;
  readonly ending: Ending;
}

export type Ending =
  /** A 2xx is the route's own answer, unless a `filler` takes its place; other statuses carry a short explanation. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** Names and values in turn, added to those of the answer. */
      readonly headers: readonly string[];
      /** Bytes of filler instead of a body. */
      readonly filler: number | undefined;
      /** The connection breaks after this many bytes of a longer body. */
      readonly cut: number | undefined;
    }
  /** The connection is reset before any byte of an answer. */
  | { readonly kind: 'reset' }
  /** No answer ever comes. */
  | { readonly kind: 'hang' };

export function answerWith(status: number, headers: readonly string[] = []): Ending {
  return { kind: 'answer', status, headers, filler: undefined, cut: undefined };
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
