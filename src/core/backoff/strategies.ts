/**
 * The registry of backoff strategies, by name. Each is a formula with its source, in one of the files of this folder.
 */
import { decorrelatedJitter } from './decorrelated.ts';
import { decorrelatedJitterV2 } from './decorrelated-v2.ts';
import { additiveJitter, envoy, equalJitter, exponentialJitter, fullJitter, grpc, jpillora, random } from './jitter.ts';
import type { BackOffOptions } from './back-off-options.ts';
import { doubling, exponential, fibonacci, fixed, linear, polynomial, sip } from './deterministic.ts';
import { celery, ethernet, table } from './slotted.ts';
import type { BackOffStrategy, StrategyDefinition } from './define-strategy.ts';

export { BackOffOptionError, type BackOffOptions, type OptionName } from './back-off-options.ts';
export type { BackOffStrategy, Band, StrategyDefinition } from './define-strategy.ts';

export type StrategyName =
  | 'fixed'
  | 'random'
  | 'linear'
  | 'polynomial'
  | 'fibonacci'
  | 'exponential'
  | 'exponential-jitter'
  | 'additive-jitter'
  | 'full-jitter'
  | 'equal-jitter'
  | 'decorrelated-jitter'
  | 'decorrelated-jitter-v2'
  | 'ethernet'
  | 'celery'
  | 'jpillora'
  | 'sip'
  | 'doubling'
  | 'table'
  | 'grpc'
  | 'envoy';

/** In the order of a listing: the simplest first. */
export const strategies: Readonly<Record<StrategyName, StrategyDefinition>> = Object.freeze({
  fixed,
  random,
  linear,
  polynomial,
  fibonacci,
  exponential,
  'exponential-jitter': exponentialJitter,
  'additive-jitter': additiveJitter,
  'full-jitter': fullJitter,
  'equal-jitter': equalJitter,
  'decorrelated-jitter': decorrelatedJitter,
  'decorrelated-jitter-v2': decorrelatedJitterV2,
  ethernet,
  celery,
  jpillora,
  sip,
  doubling,
  table,
  grpc,
  envoy,
});

export function isStrategyName(name: string): name is StrategyName {
  return Object.hasOwn(strategies, name);
}

export const strategyNames: readonly StrategyName[] = Object.keys(strategies).filter(isStrategyName);

/** A backoff as the configuration states it. An undefined option has the strategy's default. */
export interface BackOffSpec extends BackOffOptions {
  readonly strategy: StrategyName;
}

/**
 * Makes a strategy. It holds no state between delays, so one instance serves any number of requests.
 * @throws BackOffOptionError naming an impossible option, whether the strategy reads it or not.
 */
export function makeBackOff({ strategy, ...options }: BackOffSpec): BackOffStrategy {
  return strategies[strategy].make(strategy, options);
}
