import type { Millis } from '../../core/scalars.ts';

/** The response that the practice server gives to one request. */
export interface ResponsePlan {
  /** The time the work takes, or the delay before a response without work, in ms. */
  readonly delay: Millis;
  /** The route does its work (echoes, charges) before the ending. */
  readonly runsHandler: boolean;
  readonly ending: ResponseEnding;
}

export type ResponseEnding =
  /** A 2xx is the route's own response, unless a `filler` replaces it; other statuses carry a short explanation. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** Names and values alternating, added to those of the response. */
      readonly headers: readonly string[];
      /** Bytes of filler instead of a body. */
      readonly fillerBytes: number | undefined;
      /** The connection breaks after this many bytes of a longer body. */
      readonly cutAfterBytes: number | undefined;
    }
  /** The connection is reset before the first byte of a response. */
  | { readonly kind: 'reset' }
  /** No response is ever sent. */
  | { readonly kind: 'hang' };

export function respondWith(status: number, headers: readonly string[] = []): ResponseEnding {
  return { kind: 'answer', status, headers, fillerBytes: undefined, cutAfterBytes: undefined };
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
