import type { BlackoutSpec } from './models/blackout.ts';
import { Blackout } from './models/blackout.ts';
import type { ConcurrencySpec } from './models/concurrency.ts';
import { Concurrency } from './models/concurrency.ts';
import type { FixedWindowSpec } from './models/fixed-window.ts';
import { FixedWindow } from './models/fixed-window.ts';
import type { GcraSpec } from './models/gcra.ts';
import { Gcra } from './models/gcra.ts';
import type { LimitModel } from './models/limit-model.ts';
import type { SlidingWindowSpec } from './models/sliding-window.ts';
import { SlidingWindow } from './models/sliding-window.ts';
import type { TokenBucketSpec } from './models/token-bucket.ts';
import { TokenBucket } from './models/token-bucket.ts';
import type { UnlimitedSpec } from './models/unlimited.ts';
import { Unlimited } from './models/unlimited.ts';

/** A limit as a configuration writes it. */
export type ModelSpec =
  | TokenBucketSpec
  | GcraSpec
  | FixedWindowSpec
  | SlidingWindowSpec
  | BlackoutSpec
  | ConcurrencySpec
  | UnlimitedSpec;

/** @throws RangeError when a number of the spec is out of its range */
export function makeModel(spec: ModelSpec): LimitModel {
  switch (spec.kind) {
    case 'token-bucket':
      return new TokenBucket(spec);
    case 'gcra':
      return new Gcra(spec);
    case 'fixed-window':
      return new FixedWindow(spec);
    case 'sliding-window':
    case 'sliding-window-counting':
      return new SlidingWindow(spec);
    case 'blackout':
      return new Blackout(spec);
    case 'concurrency':
      return new Concurrency(spec);
    case 'unlimited':
      return new Unlimited();
  }
}

/** The same limit with another number: what `LimitModel.retarget` makes of it. */
export function withLimit(spec: ModelSpec, limit: number): ModelSpec {
  switch (spec.kind) {
    case 'token-bucket':
    case 'gcra':
    case 'blackout':
      return { ...spec, rate: limit };
    case 'fixed-window':
    case 'sliding-window':
    case 'sliding-window-counting':
    case 'concurrency':
      return { ...spec, limit };
    case 'unlimited':
      return spec;
  }
}

/** The number that `withLimit` changes; `Infinity` when there is no limit. */
export function limitOf(spec: ModelSpec): number {
  switch (spec.kind) {
    case 'token-bucket':
    case 'gcra':
    case 'blackout':
      return spec.rate;
    case 'fixed-window':
    case 'sliding-window':
    case 'sliding-window-counting':
    case 'concurrency':
      return spec.limit;
    case 'unlimited':
      return Number.POSITIVE_INFINITY;
  }
}
