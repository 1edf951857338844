import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { Attempt } from '../../../src/library/run-attempt.ts';
import type { RetryOptions } from '../../../src/library/retry-options.ts';
import { RetryBudget } from '../../../src/library/retry-budget.ts';
import { failureOf, retry } from '../../../src/library/retry.ts';

import { strategyNames } from '../../../src/core/backoff/strategies.ts';
import { virtualClock } from '../../support/core/virtual-clock.ts';

const half = (): number => 0.5;

/** Fails with these errors in turn, and then returns `done`. */
function failing(errors: readonly unknown[]): {
  readonly action: (attempt: Attempt) => Promise<string>;
  readonly seen: Attempt[];
} {
  const seen: Attempt[] = [];
  return {
    seen,
    action(attempt) {
      seen.push(attempt);
      const error = errors[seen.length - 1];
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- whatever an action throws
      return error === undefined ? Promise.resolve('done') : Promise.reject(error);
    },
  };
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was not rejected');
}

function broken(fields: object = {}): Error {
  return Object.assign(new Error('broken'), fields);
}

describe('an action', () => {
  test('that succeeds at once is called once, without a wait', async () => {
    const clock = virtualClock();
    const { action, seen } = failing([]);
    expect(await retry(action, { clock })).toBe('done');
    expect(seen.map(({ attempt, deadline }) => ({ attempt, deadline }))).toEqual([{ attempt: 1, deadline: Infinity }]);
    expect(clock.waits).toEqual([]);
  });

  test('that fails is called again after the delays of the strategy', async () => {
    const clock = virtualClock();
    const { action, seen } = failing([broken(), broken(), broken()]);
    expect(await retry(action, { clock, random: half, backOff: 'exponential' })).toBe('done');
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    expect(clock.waits).toEqual([100, 200, 400]);
  });

  test('may be synchronous: an exception counts as a rejection', async () => {
    const clock = virtualClock();
    let calls = 0;
    const value = await retry(
      () => {
        calls += 1;
        if (calls === 1) throw broken();
        return calls;
      },
      { clock },
    );
    expect(value).toBe(2);
  });

  test('rejects with its last error itself when no attempt is left', async () => {
    const clock = virtualClock();
    const errors = [broken(), broken({ cause: 'why' }), Object.freeze(broken())];
    const error = await rejection(retry(failing(errors).action, { attempts: 3, clock }));
    expect(error).toBe(errors[2]);
    expect(failureOf(error)).toEqual({ attempts: 3, end: 'attempts_exhausted' });
    expect(failureOf(errors[1])).toBeUndefined();
    expect(clock.pending()).toBe(0);
  });

  test('stops where its strategy gives up', async () => {
    const clock = virtualClock();
    const backOff = { strategy: 'doubling', baseInterval: '1s', maxInterval: '4s' } as const;
    const error = await rejection(retry(() => Promise.reject(broken()), { attempts: Infinity, backOff, clock }));
    expect(clock.waits).toEqual([1000, 2000, 4000]);
    expect(failureOf(error)).toEqual({ attempts: 4, end: 'attempts_exhausted' });
  });
});

describe('errors', () => {
  test.each([
    ['a TypeError', new TypeError('x is not a function')],
    ['a RangeError', new RangeError('x')],
    ['a SyntaxError', new SyntaxError('x')],
    ['a failed assertion', broken({ code: 'ERR_ASSERTION' })],
    ['an AbortError', new DOMException('enough', 'AbortError')],
    ['a status that will not change', broken({ status: 404 })],
    ['the same under another name', broken({ statusCode: 400 })],
    ['a TypeError with an unrelated cause', new TypeError('x', { cause: new TypeError('y') })],
  ])('%s is not retried', async (_, error) => {
    const { action, seen } = failing([error]);
    expect(await rejection(retry(action, { clock: virtualClock() }))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 1, end: 'stopped' });
    expect(seen).toHaveLength(1);
  });

  test.each([
    ['an Error', broken()],
    ['a value that is no Error', 'a text'],
    ['a 429', broken({ status: 429 })],
    ['a 503', broken({ status: 503 })],
    ['an unreadable hint', broken({ retryAfter: 'soon' })],
    ['a hint below 0', broken({ retryAfter: -1 })],
  ])('%s is retried', async (_, error) => {
    const clock = virtualClock();
    expect(await retry(failing([error]).action, { clock, backOff: 'fixed' })).toBe('done');
    expect(clock.waits).toEqual([100]);
  });

  test.each(['notaurl', 'http://', 'http://a b/'])('of fetch for an invalid URL, %s, is not retried', async (url) => {
    let calls = 0;
    const error = await rejection(
      retry(
        () => {
          calls += 1;
          return fetch(url);
        },
        { clock: virtualClock() },
      ),
    );
    expect(error).toBeInstanceOf(TypeError);
    expect([calls, failureOf(error)?.end]).toEqual([1, 'stopped']);
  });

  test.each([
    ['milliseconds', 2000],
    ['a duration', '2s'],
    ['the value of a Retry-After header', '2'],
  ])('that ask for a wait in %s get it, plus up to a tenth at random', async (_, retryAfter) => {
    const clock = virtualClock();
    expect(await retry(failing([broken({ retryAfter })]).action, { clock, random: half })).toBe('done');
    expect(clock.waits).toEqual([2100]);
  });

  test('that ask for a wait beyond the maximum are reported at once', async () => {
    const clock = virtualClock();
    const error = broken({ retryAfter: '2m' });
    expect(await rejection(retry(failing([error]).action, { clock }))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 1, end: 'retry_after_too_long' });
    expect(clock.waits).toEqual([]);
    expect(await retry(failing([error]).action, { clock, maxRetryAfter: '3m' })).toBe('done');
  });
});

describe('a wait longer than the maximum', () => {
  const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toUTCString();

  test.each<[string, string | number]>([
    ['ten days', '864000'],
    ['25 days, beyond what a timer can be', '2160000'],
    ['30 days', '2592000'],
    ['a year', '31536000'],
    ['more seconds than a number holds', '9'.repeat(400)],
    ['a date 25 days off', inDays(25)],
    ['a date 40 days off', inDays(40)],
    ['a date a thousand years off', inDays(365_000)],
    ['so many milliseconds', 1e12],
    ['for ever', Infinity],
    ['a duration', '10000h'],
  ])('is not begun, and not ignored: %s', async (_, retryAfter) => {
    const clock = virtualClock();
    const error = broken({ status: 429, retryAfter });
    const { action, seen } = failing([error]);
    expect(await rejection(retry(action, { clock, backOff: 'fixed', maxRetryAfter: '200h' }))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 1, end: 'retry_after_too_long' });
    expect(seen).toHaveLength(1);
    // A custom classifier that returns it is treated the same.
    if (typeof retryAfter !== 'number' && retryAfter !== '10000h') return;
    const own = { clock, classify: () => ({ retryAfter }) };
    expect(await rejection(retry(failing([error]).action, own))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 1, end: 'retry_after_too_long' });
  });

  test('is not required by a date in the past', async () => {
    const clock = virtualClock();
    const error = broken({ status: 429, retryAfter: inDays(-1) });
    expect(await retry(failing([error]).action, { clock, backOff: 'fixed' })).toBe('done');
    expect(clock.waits).toEqual([100]);
  });
});

describe('an outcome', () => {
  test('may be reclassified, return values included', async () => {
    const clock = virtualClock();
    const values = [503, 429, 200];
    const seen: unknown[] = [];
    const value = await retry(({ attempt }) => values[attempt - 1] ?? 0, {
      clock,
      backOff: 'fixed',
      random: half,
      classify(settled, attempt) {
        seen.push([settled, attempt]);
        if (settled.kind === 'error' || settled.value === 200) return 'stop';
        return settled.value === 429 ? { retryAfter: '1s' } : 'retry';
      },
    });
    expect(value).toBe(200);
    expect(clock.waits).toEqual([100, 1050]);
    expect(seen[0]).toEqual([{ kind: 'value', value: 503 }, 1]);
  });

  test('that requires a retry is the result when no attempt is left', async () => {
    const value = await retry(() => 503, { attempts: 2, classify: () => 'retry', clock: virtualClock() });
    expect(value).toBe(503);
  });

  test('that is discarded has its signal aborted; the accepted one has not', async () => {
    const signals: AbortSignal[] = [];
    await retry(
      ({ signal }) => {
        signals.push(signal);
        return signals.length;
      },
      { clock: virtualClock(), classify: ({ kind }) => (kind === 'value' && signals.length < 2 ? 'retry' : 'stop') },
    );
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });

  test('is reported before the wait', async () => {
    const reported: unknown[] = [];
    const error = broken({ retryAfter: 1000 });
    await retry(failing([broken(), error]).action, {
      clock: virtualClock(),
      random: half,
      backOff: 'fixed',
      onRetry: ({ attempt, settled, delay, source }) => reported.push([attempt, settled.kind, delay, source]),
    });
    expect(reported).toEqual([
      [1, 'error', 100, 'backoff'],
      [2, 'error', 1050, 'hint'],
    ]);
  });

  test.each<[string, () => unknown, string]>([
    ['a promise', () => Promise.resolve('stop'), 'a promise: it is not waited for'],
    ['nothing', () => undefined, 'undefined'],
    ['false', () => false, 'false'],
    ['true', () => true, 'true'],
    ['another word', () => 'maybe', "'maybe'"],
    ['no hint', () => ({ retryAfter: undefined }), '{ retryAfter: undefined }'],
  ])('classified as %s is neither retried nor accepted', async (_, own, expectedMessage) => {
    const { action, seen } = failing([broken()]);
    const error = await rejection(retry(action, { clock: virtualClock(), classify: own as never }));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toBe(
      `classify must return 'retry', 'stop' or {retryAfter}, not ${expectedMessage}`,
    );
    expect(seen).toHaveLength(1);
  });

  test.each([Number.NaN, -1, undefined, '100'])(
    'to be retried after %o is not retried: no timer accepts that',
    async (delay) => {
      const { action, seen } = failing([broken()]);
      const backOff = { name: 'mine', next: () => ({ delay: delay as number, memory: 0 }) };
      const error = await rejection(retry(action, { clock: virtualClock(), backOff }));
      expect(error).toMatchObject({ name: 'TypeError', message: `backOff must give delays from 0, not ${delay}` });
      expect(seen).toHaveLength(1);
    },
  );

  test('is not retried if a listener throws', async () => {
    const budget = new RetryBudget({ ratio: 0, burst: 1 });
    const fault = new Error('of the listener');
    const throwing = (): void => {
      throw fault;
    };
    const options = { clock: virtualClock(), budget };
    expect(await rejection(retry(failing([broken()]).action, { ...options, onRetry: throwing }))).toBe(fault);
    expect(await rejection(retry(failing([broken()]).action, { ...options, classify: throwing as never }))).toBe(fault);
    expect(budget.left).toBe(1);
  });
});

describe('time', () => {
  test('does not begin a wait beyond the deadline', async () => {
    const clock = virtualClock();
    const error = broken();
    expect(await rejection(retry(() => Promise.reject(error), { timeout: 300, backOff: 'exponential', clock }))).toBe(
      error,
    );
    // The first wait is 100; 200 more would exceed the deadline.
    expect(failureOf(error)).toEqual({ attempts: 2, end: 'deadline' });
    expect(clock.pending()).toBe(0);
  });

  test('ends and retries an attempt that takes too long, whether or not it reacts to its signal', async () => {
    const clock = virtualClock();
    const reasons: unknown[] = [];
    const value = await retry(
      ({ attempt, signal }) => {
        if (attempt === 3) return 'done';
        signal.addEventListener('abort', () => reasons.push((signal.reason as Error).name));
        return attempt === 1 ? new Promise<string>(() => undefined) : until(signal);
      },
      { perTryTimeout: '50ms', clock, backOff: 'fixed' },
    );
    expect(value).toBe('done');
    expect(clock.waits).toEqual([50, 100, 50, 100, 50]);
    expect(reasons).toEqual(['TimeoutError', 'TimeoutError']);
    expect(clock.pending()).toBe(0);
  });

  test('limits an attempt to the deadline', async () => {
    const clock = virtualClock();
    const deadlines: number[] = [];
    const hung = retry(
      ({ signal, deadline }) => {
        deadlines.push(deadline);
        return until(signal);
      },
      { timeout: 80, perTryTimeout: '50ms', backOff: { strategy: 'fixed', baseInterval: 10 }, clock },
    );
    const error = await rejection(hung);
    expect(error).toMatchObject({ name: 'TimeoutError', message: 'the deadline has passed' });
    expect(failureOf(error)).toEqual({ attempts: 2, end: 'deadline' });
    expect(deadlines).toEqual([1080, 1080]);
    expect(clock.now()).toBe(1080);
  });

  test('bounds an inner attempt by the outer one', async () => {
    const clock = virtualClock();
    const error = await rejection(
      retry(({ deadline }) => retry(({ signal }) => until(signal), { deadline, timeout: '1h', clock }), {
        timeout: '2s',
        clock,
      }),
    );
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(clock.now()).toBe(3000);
  });

  test('skips the action if the deadline has passed before it begins', async () => {
    const { action, seen } = failing([]);
    const error = await rejection(retry(action, { deadline: 999, clock: virtualClock() }));
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(seen).toEqual([]);
  });

  test('begins no attempt if the sleep overruns the deadline', async () => {
    let now = 0;
    const clock = {
      now: () => now,
      wait(_: number, wake: () => void) {
        const timer = setImmediate(() => {
          now += 500;
          wake();
        });
        return () => clearImmediate(timer);
      },
    };
    const budget = new RetryBudget({ ratio: 0, burst: 1 });
    const error = broken();
    const { action, seen } = failing([error]);
    expect(await rejection(retry(action, { timeout: 300, clock, budget, backOff: 'fixed' }))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 1, end: 'deadline' });
    expect(seen).toHaveLength(1);
    expect(budget.left).toBe(1);
  });
});

describe('the signal', () => {
  test('skips the action if it is already aborted', async () => {
    const { action, seen } = failing([]);
    const reason = new Error('changed my mind');
    expect(await rejection(retry(action, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(seen).toEqual([]);
  });

  test("ends an attempt at once, and aborts the attempt's own signal", async () => {
    const caller = new AbortController();
    const reason = { no: 'error' };
    let abortReason: unknown;
    const running = retry(
      ({ signal }) => {
        signal.addEventListener('abort', () => void (abortReason = signal.reason));
        return new Promise(() => undefined);
      },
      { signal: caller.signal, perTryTimeout: '1h' },
    );
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(1);
    caller.abort(reason);
    expect(await rejection(running)).toBe(reason);
    expect(abortReason).toBe(reason);
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
  });

  test('ends a wait at once, and refunds the reserved retry', async () => {
    const caller = new AbortController();
    const budget = new RetryBudget({ ratio: 0, burst: 2 });
    const { action, seen } = failing([broken()]);
    const reason = new Error('enough');
    const running = retry(action, {
      signal: caller.signal,
      budget,
      backOff: { strategy: 'fixed', baseInterval: '1h' },
      onRetry: () => setImmediate(() => caller.abort(reason)),
    });
    expect(await rejection(running)).toBe(reason);
    expect(seen).toHaveLength(1);
    expect(budget.left).toBe(1);
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
  });

  test('ends a retry before the wait if it aborts while a listener runs', async () => {
    const caller = new AbortController();
    const clock = virtualClock();
    const options = { signal: caller.signal, clock, onRetry: () => caller.abort() };
    expect(await rejection(retry(failing([broken()]).action, options))).toMatchObject({ name: 'AbortError' });
    expect(clock.waits).toEqual([]);
  });

  test('keeps no listener after success or failure', async () => {
    const { signal } = new AbortController();
    const options = { signal, attempts: 3, clock: virtualClock(), perTryTimeout: '1s' };
    const errors = [broken(), broken()];
    await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) =>
        retry(failing(i % 2 === 0 ? errors : [...errors, ...errors]).action, options),
      ),
    );
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(options.clock.pending()).toBe(0);
  });
});

test('the later result of an abandoned attempt causes no unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    let fail: (error: Error) => void = () => undefined;
    const hung = new Promise<never>((_, reject) => (fail = reject));
    expect(await rejection(retry(() => hung, { attempts: 1, timeout: 1 }))).toMatchObject({ name: 'TimeoutError' });
    fail(new Error('late'));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});

test('leaves no timer in the process when it is over', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  const options: RetryOptions<string> = {
    timeout: '1h',
    perTryTimeout: '1h',
    backOff: { strategy: 'fixed', baseInterval: 1 },
  };
  await retry(failing([broken(), broken()]).action, options);
  await rejection(retry(failing([new TypeError('x')]).action, options));
  expect(timers()).toBeLessThanOrEqual(before);
});

describe('a shared budget', () => {
  test('bounds retries, and earns more by successes', async () => {
    const budget = new RetryBudget({ ratio: 0.5, burst: 2 });
    const options = { budget, attempts: 10, clock: virtualClock() };
    const error = broken();
    expect(await rejection(retry(() => Promise.reject(error), options))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 3, end: 'budget_exhausted' });
    await retry(() => 'done', options);
    await retry(() => 'done', options);
    expect(await rejection(retry(() => Promise.reject(error), options))).toBe(error);
    expect(failureOf(error)).toEqual({ attempts: 2, end: 'budget_exhausted' });
  });
});

describe('an invalid budget is rejected', () => {
  test.each<[string, unknown, string]>([
    ['a typo', { ratio: 0.2, burts: 10 }, 'RetryBudget has no option burts (did you mean burst?)'],
    ['a missing option', { ratio: 0.2 }, 'burst of a RetryBudget must be a number from 0, not undefined'],
    ['no number', { ratio: 0.2, burst: Number.NaN }, 'burst of a RetryBudget must be a number from 0, not NaN'],
    ['infinity', { ratio: 0.2, burst: Infinity }, 'burst of a RetryBudget must be a number from 0, not Infinity'],
    ['a text', { ratio: '0.2', burst: 10 }, 'ratio of a RetryBudget must be a number from 0, not 0.2'],
    ['below 0', { ratio: -1, burst: 10 }, 'ratio of a RetryBudget must be a number from 0, not -1'],
    ['nothing', undefined, 'RetryBudget takes its options as an object, not undefined'],
  ])('%s', (_, settings, message) => {
    expect(() => new RetryBudget(settings as never)).toThrow(message);
    const budget = new RetryBudget({ ratio: 0, burst: 1 });
    expect(() => budget.adjust(settings as never)).toThrow(message);
    expect([budget.left, budget.spend(), budget.spend()]).toEqual([1, true, false]);
  });

  test('later changes to the options object have no effect', () => {
    const settings = { ratio: 0, burst: 1 };
    const budget = new RetryBudget(settings);
    settings.burst = Number.NaN;
    budget.refund();
    expect([budget.spend(), budget.spend()]).toEqual([true, false]);
  });
});

describe('invalid options are rejected before any attempt', () => {
  test.each<[string, object, string]>([
    ['an unknown one', { atempts: 3 }, 'retry has no option atempts (did you mean attempts?)'],
    ['no attempt', { attempts: 0 }, 'attempts must be a whole number from 1, or Infinity, not 0'],
    [
      'a strategy that is none',
      { backOff: 'ful-jitter' },
      "no backoff strategy is called 'ful-jitter' (did you mean full-jitter?)",
    ],
    [
      'a malformed strategy',
      { backOff: 'sometimes' },
      `no backoff strategy is called 'sometimes': there are ${strategyNames.join(', ')}`,
    ],
    [
      'no strategy at all',
      { backOff: 100 },
      'backOff must be the name of a strategy, {strategy, …} or a strategy, not 100',
    ],
    [
      'an unknown option of a strategy',
      { backOff: { strategy: 'fixed', baseIntervall: 1 } },
      'the backoff fixed has no option baseIntervall (did you mean baseInterval?)',
    ],
    ['an invalid classifier', { classify: 'stop' }, 'classify must be a function'],
    [
      'a cap below the base',
      { backOff: { strategy: 'full-jitter', baseInterval: '2s', maxInterval: '1s' } },
      'maxInterval must be at least baseInterval (2000), not 1000',
    ],
    [
      'a duration without a unit',
      { perTryTimeout: '500' },
      'perTryTimeout: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 500ms or 500s?)',
    ],
    ['a duration below 0', { timeout: -1 }, 'timeout must be from 0 to 2147483647 milliseconds, not -1'],
    [
      'an invalid budget',
      { budget: { ratio: 0.2, burst: 10 } },
      'budget must be a shared RetryBudget: new RetryBudget({ ratio, burst })',
    ],
    ['options that are none', 5 as never, 'retry takes its options as an object, not 5'],
    ['no time at all', { timeout: 0 }, 'timeout must be longer than 0'],
    [
      'a deadline that is no number',
      { deadline: Number.NaN },
      'deadline must be a point on the clock of performance.now(), in milliseconds',
    ],
  ])('%s', async (_, options, message) => {
    const { action, seen } = failing([]);
    expect(await rejection(retry(action, options))).toMatchObject({ message });
    expect(seen).toEqual([]);
  });
});

function until(signal: AbortSignal): Promise<string> {
  return new Promise((_, reject) => {
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- as fetch does
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}
