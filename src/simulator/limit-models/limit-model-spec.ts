import type { BlackoutSpec } from './blackout.ts';
import { Blackout } from './blackout.ts';
import type { ConcurrencySpec } from './concurrency.ts';
import { Concurrency } from './concurrency.ts';
import type { FixedWindowSpec } from './fixed-window.ts';
import { FixedWindow } from './fixed-window.ts';
import type { GcraSpec } from './gcra.ts';
import { Gcra } from './gcra.ts';
import type { LimitModel } from './limit-model.ts';
import type { SlidingWindowSpec } from './sliding-window.ts';
import { SlidingWindow } from './sliding-window.ts';
import type { TokenBucketSpec } from './token-bucket.ts';
import { TokenBucket } from './token-bucket.ts';
import type { UnlimitedSpec } from './unlimited.ts';
import { Unlimited } from './unlimited.ts';
import type { WorkersSpec } from './workers.ts';
import { Workers } from './workers.ts';

/** A limit as written in a configuration. */
export type LimitModelSpec = NestableLimitSpec | WorkersSpec;

/** A limit that may apply to some of an upstream's requests. */
export type NestableLimitSpec =
  | TokenBucketSpec
  | GcraSpec
  | FixedWindowSpec
  | SlidingWindowSpec
  | BlackoutSpec
  | ConcurrencySpec
  | UnlimitedSpec;

/** @throws RangeError when a number of the spec is out of its range */
export function makeLimitModel(spec: LimitModelSpec): LimitModel {
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
    case 'workers':
      return new Workers(spec);
    case 'unlimited':
      return new Unlimited();
  }
}

/** The same limit with another number, as after `LimitModel.setLimit`. */
export function withLimit(spec: LimitModelSpec, limit: number): LimitModelSpec {
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
    case 'workers':
      return { ...spec, workers: limit };
    case 'unlimited':
      return spec;
  }
}

/** The number that `withLimit` changes; `Infinity` when there is no limit. */
export function limitOf(spec: LimitModelSpec): number {
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
    case 'workers':
      return spec.workers;
    case 'unlimited':
      return Number.POSITIVE_INFINITY;
  }
}
