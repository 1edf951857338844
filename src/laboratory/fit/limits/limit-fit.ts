import type { Millis, PerSecond } from '../../../core/scalars.ts';

/** A limit with its numbers. */
export type FittedLimit =
  | { readonly kind: 'token-bucket'; readonly rate: PerSecond; readonly burst: number }
  /** `phase`: when a window starts, in ms after the first attempt of the log, below `window`. */
  | { readonly kind: 'fixed-window'; readonly limit: number; readonly window: Millis; readonly phase: Millis }
  | { readonly kind: 'sliding-window'; readonly limit: number; readonly window: Millis }
  | { readonly kind: 'concurrency'; readonly limit: number }
  /** No limit: refusals come at random, at their mean share. */
  | { readonly kind: 'none' };

export type LimitKind = FittedLimit['kind'];

/** A limit, and what it predicts for the attempts of a log. */
export interface LimitFit {
  readonly limit: FittedLimit;
  /** `OPEN`, `SHUT` or `UNKNOWN` for each attempt. */
  readonly predictions: Uint8Array;
}

/** The numbers that are fitted for a kind, beside the shares of wrong predictions. */
export const FITTED_NUMBERS: Readonly<Record<LimitKind, number>> = {
  'token-bucket': 2,
  'fixed-window': 3,
  'sliding-window': 2,
  concurrency: 1,
  none: 0,
};
