/** Strategies that are not random. Clients that fail together return together, so use them for one client or in tests. */
import { BackOffOptionError } from './back-off-options.ts';
import { constantDelay, scaleCapped } from './delay-distributions.ts';
import { defineStrategy } from './define-strategy.ts';

/** c, always. */
export const fixed = defineStrategy({
  summary: 'the same delay every time',
  formula: 'baseInterval',
  source: 'the constant wait of a polling loop; Polly, RetryBackoffType.Constant',
  defaults: { baseInterval: 100 },
  delays: ({ baseInterval }) => constantDelay(() => baseInterval),
});

/** min(cap, b(n + 1)). */
export const linear = defineStrategy({
  summary: 'one base interval longer each time',
  formula: 'min(maxInterval, baseInterval · (n + 1))',
  source: 'Polly, RetryBackoffType.Linear',
  defaults: { baseInterval: 100, maxInterval: 20_000 },
  delays: ({ baseInterval, maxInterval }) => constantDelay((n) => scaleCapped(baseInterval, n + 1, maxInterval)),
});

/** min(cap, b(n + 1)^p). */
export const polynomial = defineStrategy({
  summary: 'a power of the number of failures',
  formula: 'min(maxInterval, baseInterval · (n + 1)^exponent)',
  source:
    'Håstad, Leighton, Rogoff, "Analysis of Backoff Protocols for Multiple Access Channels", SIAM J. Comput. 25 (1996)',
  defaults: { baseInterval: 100, exponent: 2, maxInterval: 20_000 },
  delays: ({ baseInterval, exponent, maxInterval }) =>
    constantDelay((n) => scaleCapped(baseInterval, (n + 1) ** exponent, maxInterval)),
});

/** min(cap, b · F(n)), F(0) = 0: the first retry goes at once. */
export const fibonacci = defineStrategy({
  summary: 'the sum of the two delays before; the first retry goes at once',
  formula: 'min(maxInterval, baseInterval · F(n)), F(0) = 0, F(1) = 1',
  source: 'the Fibonacci numbers from F(0) = 0; backoff.fibo of the Python package backoff begins at F(1)',
  defaults: { baseInterval: 100, maxInterval: 20_000 },
  delays: ({ baseInterval, maxInterval }) =>
    constantDelay((n) => scaleCapped(baseInterval, fibonacciNumber(n), maxInterval)),
});

/** The first Fibonacci number beyond a double. */
const BEYOND_DOUBLE = 1477;

function fibonacciNumber(n: number): number {
  let [current, next] = [0, 1];
  for (let i = Math.min(n, BEYOND_DOUBLE); i > 0; i -= 1) [current, next] = [next, current + next];
  return current;
}

/** min(cap, b·f^n). */
export const exponential = defineStrategy({
  summary: 'a constant factor longer each time, up to the cap',
  formula: 'min(maxInterval, baseInterval · multiplier^n)',
  source: 'AWS Architecture Blog, "Exponential Backoff And Jitter" (2015), without its jitter',
  defaults: { baseInterval: 100, multiplier: 2, maxInterval: 20_000 },
  delays: ({ baseInterval, multiplier, maxInterval }) =>
    constantDelay((n) => scaleCapped(baseInterval, multiplier ** n, maxInterval)),
});

/** T1·2^n up to T2. The end of the transaction (timer F, 64·T1) is the request's timeout, not the backoff's. */
export const sip = defineStrategy({
  summary: "SIP's timer E: doubling from T1 (baseInterval) to T2 (maxInterval)",
  formula: 'min(maxInterval, baseInterval · 2^n)',
  source: 'RFC 3261 §17.1.2.2, T1 = 500 ms, T2 = 4 s',
  defaults: { baseInterval: 500, maxInterval: 4000 },
  delays: ({ baseInterval, maxInterval }) => constantDelay((n) => scaleCapped(baseInterval, 2 ** n, maxInterval)),
});

/** 1, 2, 4, … 64 s, then no more: unlike a cap, the longest delay is the last. */
export const doubling = defineStrategy({
  summary: 'doubling up to maxInterval, then giving up',
  formula: 'baseInterval · 2^n while that is at most maxInterval',
  source: 'Stevens, Rago, "Advanced Programming in the UNIX Environment", connect_retry (figure 16.10)',
  defaults: { baseInterval: 1000, maxInterval: 64_000 },
  retries({ baseInterval, maxInterval }) {
    if (baseInterval === 0) throw new BackOffOptionError('baseInterval', 'above 0, or it never reaches maxInterval', 0);
    let retries = 0;
    while (baseInterval * 2 ** retries <= maxInterval) retries += 1;
    return retries;
  },
  delays: ({ baseInterval, maxInterval }) => constantDelay((n) => scaleCapped(baseInterval, 2 ** n, maxInterval)),
});
