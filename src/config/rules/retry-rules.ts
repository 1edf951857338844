import type { BackOffOptions } from '../../core/backoff/strategies.ts';
import { BackOffOptionError, makeBackOff, strategies } from '../../core/backoff/strategies.ts';
import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { mergeBackOff } from '../schema/retry-overrides.ts';
import type { BackOffConfig, BackOffOverride, RetryOverride } from '../schema/config-schema.ts';

/** Every backoff that a request may use is valid, with warnings for unused options and for risky retries. */
export function* checkRetries(draft: PartialConfig): Generator<RuleFinding> {
  const { upstreams, routes = [], replayMemory = Infinity } = draft;
  for (const [name, { retry }] of upstreams) {
    const path = ['upstreams', name, 'retry'];
    yield* checkRetry(path, retry, replayMemory);
    yield* checkBackOffs(path, retry);
  }
  for (const [i, { upstream, retry }] of routes.entries()) {
    if (upstream === undefined || retry === undefined) continue;
    const path = ['routes', i, 'retry'];
    yield* checkRetry(path, retry, replayMemory);
    const base = upstreams.get(upstream)?.retry.backOff;
    if (base === undefined) continue;
    const backOff = mergeBackOff(base, retry.backOff);
    if (retry.backOff !== undefined) yield* checkBackOff([...path, 'backOff'], backOff, retry.backOff);
    yield* checkBackOffsByReason([...path, 'backOffFor'], backOff, retry.backOffFor);
  }
  yield* checkClassBackOffs(draft);
}

/** The backoffs of one upstream. */
export function* checkBackOffs(
  path: Path,
  { backOff, backOffFor }: Pick<PartialUpstream['retry'], 'backOff' | 'backOffFor'>,
): Generator<RuleFinding> {
  if (backOff === undefined) return;
  yield* checkBackOff([...path, 'backOff'], backOff, backOff);
  yield* checkBackOffsByReason([...path, 'backOffFor'], backOff, backOffFor);
}

function* checkRetry(path: Path, retry: RetryOverride, replayMemory: number): Generator<RuleFinding> {
  if (retry.unkeyedWrites === 'always') {
    yield warningAt([...path, 'unkeyedWrites'], 'a write without an idempotency key may take effect twice');
  }
  if (retry.replayLimit !== undefined && retry.replayLimit > replayMemory) {
    yield warningAt([...path, 'replayLimit'], 'larger than limits.replayMemory: bodies of this size are never kept');
  }
}

function* checkBackOffsByReason(
  path: Path,
  base: BackOffConfig,
  overrides: RetryOverride['backOffFor'],
): Generator<RuleFinding> {
  for (const [reason, override] of Object.entries(overrides ?? {})) {
    if (override !== undefined) yield* checkBackOff([...path, reason], mergeBackOff(base, override), override);
  }
}

/** The backoff of a class is merged over that of every upstream; reports the first upstream for which the result is invalid. */
function* checkClassBackOffs({ classes = {}, upstreams }: PartialConfig): Generator<RuleFinding> {
  for (const [name, { backOff }] of Object.entries(classes)) {
    if (backOff === undefined) continue;
    const path = ['clients', 'classes', name, 'backOff'];
    const bases = [...upstreams.values()].flatMap(({ retry }) => retry.backOff ?? []);
    const [problem] = bases.flatMap((base) => findBackOffProblem(path, mergeBackOff(base, backOff), backOff) ?? []);
    if (problem !== undefined) yield problem;
  }
}

/** @param written the part of `spec` that is written at `path` */
export function* checkBackOff(path: Path, spec: BackOffConfig, written: BackOffOverride): Generator<RuleFinding> {
  const problem = findBackOffProblem(path, spec, written);
  if (problem !== undefined) yield problem;
  const knownOptions = strategies[spec.strategy].defaults;
  const { strategy: _, ...options } = written;
  for (const option of Object.keys(options)) {
    if (!Object.hasOwn(knownOptions, option)) {
      yield warningAt([...path, option], `${spec.strategy} does not use it`, 'key');
    }
  }
}

function findBackOffProblem(path: Path, spec: BackOffConfig, written: BackOffOptions): RuleFinding | undefined {
  try {
    makeBackOff(spec);
    return undefined;
  } catch (error) {
    if (!(error instanceof BackOffOptionError)) throw error;
    // One of a pair out of order may come from elsewhere: point at the one that is written here.
    const option = [error.option, 'baseInterval' as const].find((name) => written[name] !== undefined);
    const message =
      error.option === 'maxInterval' ? 'maxInterval is below baseInterval' : `${spec.strategy} cannot work with this`;
    return mistakeAt(option === undefined ? path : [...path, option], message);
  }
}
