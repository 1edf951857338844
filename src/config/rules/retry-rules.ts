import type { BackOffOptions } from '../../core/backoff/strategies.ts';
import { BackOffOptionError, makeBackOff, strategies } from '../../core/backoff/strategies.ts';
import type { Checked } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { Draft, DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { overrideBackOff } from '../schema/retry-overrides.ts';
import type { BackOffConfig, BackOffOverride, RetryOverride } from '../schema/config-schema.ts';

/** Every backoff that some request may meet can be made, and is told what it does not read; and what retries risk. */
export function* checkRetries(draft: Draft): Generator<Checked> {
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
    const backOff = overrideBackOff(base, retry.backOff);
    if (retry.backOff !== undefined) yield* checkBackOff([...path, 'backOff'], backOff, retry.backOff);
    yield* checkReasons([...path, 'backOffFor'], backOff, retry.backOffFor);
  }
  yield* checkClasses(draft);
}

/** Of the retries of one upstream. */
export function* checkBackOffs(
  path: Path,
  { backOff, backOffFor }: Pick<DraftUpstream['retry'], 'backOff' | 'backOffFor'>,
): Generator<Checked> {
  if (backOff === undefined) return;
  yield* checkBackOff([...path, 'backOff'], backOff, backOff);
  yield* checkReasons([...path, 'backOffFor'], backOff, backOffFor);
}

function* checkRetry(path: Path, retry: RetryOverride, replayMemory: number): Generator<Checked> {
  if (retry.unkeyedWrites === 'always') {
    yield warning([...path, 'unkeyedWrites'], 'a write without an idempotency key may take effect twice');
  }
  if (retry.replayLimit !== undefined && retry.replayLimit > replayMemory) {
    yield warning([...path, 'replayLimit'], 'more than limits.replayMemory: such bodies are never kept');
  }
}

function* checkReasons(path: Path, base: BackOffConfig, overrides: RetryOverride['backOffFor']): Generator<Checked> {
  for (const [reason, override] of Object.entries(overrides ?? {})) {
    if (override !== undefined) yield* checkBackOff([...path, reason], overrideBackOff(base, override), override);
  }
}

/** The backoff of a class is laid over that of every upstream; one that it does not fit is told. */
function* checkClasses({ classes = {}, upstreams }: Draft): Generator<Checked> {
  for (const [name, { backOff }] of Object.entries(classes)) {
    if (backOff === undefined) continue;
    const path = ['clients', 'classes', name, 'backOff'];
    const bases = [...upstreams.values()].flatMap(({ retry }) => retry.backOff ?? []);
    const [problem] = bases.flatMap((base) => findProblem(path, overrideBackOff(base, backOff), backOff) ?? []);
    if (problem !== undefined) yield problem;
  }
}

/** @param told the part of `spec` that is written at `path` */
export function* checkBackOff(path: Path, spec: BackOffConfig, told: BackOffOverride): Generator<Checked> {
  const problem = findProblem(path, spec, told);
  if (problem !== undefined) yield problem;
  const read = strategies[spec.strategy].defaults;
  const { strategy: _, ...options } = told;
  for (const option of Object.keys(options)) {
    if (!Object.hasOwn(read, option)) yield warning([...path, option], `${spec.strategy} does not use it`, 'key');
  }
}

function findProblem(path: Path, spec: BackOffConfig, told: BackOffOptions): Checked | undefined {
  try {
    makeBackOff(spec);
    return undefined;
  } catch (error) {
    if (!(error instanceof BackOffOptionError)) throw error;
    // The pair that is out of order may have been completed from elsewhere: point at what is written here.
    const option = [error.option, 'baseInterval' as const].find((name) => told[name] !== undefined);
    const message =
      error.option === 'maxInterval' ? 'maxInterval is below baseInterval' : `${spec.strategy} cannot work with this`;
    return mistake(option === undefined ? path : [...path, option], message);
  }
}
