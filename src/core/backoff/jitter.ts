/** Random strategies without a memory: a growing interval, and a random delay within it. */
import { scaleCapped, uniformDelay } from './delay-distributions.ts';
import { defineStrategy } from './define-strategy.ts';

const EXPONENTIAL = { baseInterval: 100, multiplier: 2, maxInterval: 20_000 } as const;
const AWS_ESSAY = 'AWS Architecture Blog, "Exponential Backoff And Jitter" (2015)';

/** u · max. */
export const random = defineStrategy({
  summary: 'anything up to maxInterval, every time',
  formula: 'u · maxInterval',
  expectation: 'maxInterval / 2',
  source: 'Abramson, "The ALOHA System" (1970): a random wait after each collision',
  defaults: { maxInterval: 20_000 },
  delays: ({ maxInterval }) => uniformDelay(() => [0, maxInterval]),
});

/** x = min(cap, b·f^n); x(1 − j) + 2·j·x·u, clamped after: at the cap, half of the probability lies on the cap and half below it. */
export const exponentialJitter = defineStrategy({
  summary: 'exponential, a part (jitter) of it more or less',
  formula: 'min(maxInterval, x · (1 − jitter) + 2 · jitter · x · u), x = min(maxInterval, baseInterval · multiplier^n)',
  expectation: 'x while x · (1 + jitter) ≤ maxInterval',
  source: 'Google HTTP Client for Java, ExponentialBackOff, without its added unit and clamped after the jitter too',
  defaults: { ...EXPONENTIAL, jitter: 0.5 },
  delays: ({ baseInterval, multiplier, maxInterval, jitter }) =>
    uniformDelay((n) => {
      const x = scaleCapped(baseInterval, multiplier ** n, maxInterval);
      return [x * (1 - jitter), x * (1 + jitter)];
    }, maxInterval),
});

/** min(tmax, tmin·2^n) + u·jitter. The jitter is never fed back, and comes on top of the cap: at most tmax + jitter. */
export const additiveJitter = defineStrategy({
  summary: 'doubling up to maxInterval, and up to jitterInterval more',
  formula: 'min(maxInterval, baseInterval · 2^n) + u · jitterInterval',
  expectation: 'min(maxInterval, baseInterval · 2^n) + jitterInterval / 2',
  source:
    'Google Cloud, "Exponential backoff algorithm", with the cap before the jitter so that capped clients stay apart',
  defaults: { baseInterval: 100, maxInterval: 30_000, jitterInterval: 100 },
  delays: ({ baseInterval, maxInterval, jitterInterval }) =>
    uniformDelay((n) => {
      const x = scaleCapped(baseInterval, 2 ** n, maxInterval);
      return [x, x + jitterInterval];
    }),
});

/** u · min(cap, b·f^n). */
export const fullJitter = defineStrategy({
  summary: "anything up to the exponential delay; Tidegate's default",
  formula: 'u · min(maxInterval, baseInterval · multiplier^n)',
  expectation: 'min(maxInterval, baseInterval · multiplier^n) / 2',
  source: AWS_ESSAY,
  defaults: EXPONENTIAL,
  delays: ({ baseInterval, multiplier, maxInterval }) =>
    uniformDelay((n) => [0, scaleCapped(baseInterval, multiplier ** n, maxInterval)]),
});

/** x/2 + u·x/2, x = min(cap, b·f^n). */
export const equalJitter = defineStrategy({
  summary: 'half the exponential delay, and anything up to the other half',
  formula: 'x / 2 + u · x / 2, x = min(maxInterval, baseInterval · multiplier^n)',
  expectation: '3x / 4',
  source: AWS_ESSAY,
  defaults: EXPONENTIAL,
  delays: ({ baseInterval, multiplier, maxInterval }) =>
    uniformDelay((n) => {
      const x = scaleCapped(baseInterval, multiplier ** n, maxInterval);
      return [x / 2, x];
    }),
});

/** clamp(u(d − min) + min, min, max), d = min·f^n, which has no cap of its own, so late delays equal max. */
export const jpillora = defineStrategy({
  summary: 'from baseInterval to the exponential delay, then clamped: late delays are maxInterval itself',
  formula: 'min(maxInterval, u · (d − baseInterval) + baseInterval), d = baseInterval · multiplier^n',
  expectation: '(baseInterval + d) / 2 while d ≤ maxInterval',
  source: 'github.com/jpillora/backoff, ForAttempt with Jitter',
  defaults: { baseInterval: 100, multiplier: 2, maxInterval: 10_000 },
  delays: ({ baseInterval, multiplier, maxInterval }) =>
    uniformDelay((n) => [baseInterval, scaleCapped(baseInterval, multiplier ** n, Number.MAX_VALUE)], maxInterval),
});

/** min(cap, b·1.6^n) ± 20 %. The cap is on the middle: the specification jitters after it, to 1.2 · cap. */
export const grpc = defineStrategy({
  summary: "gRPC's connection backoff: 1.6 times longer each time, ± 20 %",
  formula: 'x · (1 − jitter) + 2 · jitter · x · u, x = min(maxInterval, baseInterval · multiplier^n)',
  expectation: 'x',
  source: 'gRPC, doc/connection-backoff.md',
  defaults: { baseInterval: 1000, multiplier: 1.6, maxInterval: 120_000, jitter: 0.2 },
  delays: ({ baseInterval, multiplier, maxInterval, jitter }) =>
    uniformDelay((n) => {
      const x = scaleCapped(baseInterval, multiplier ** n, maxInterval);
      return [x * (1 - jitter), x * (1 + jitter)];
    }),
});

const ENVOY_BASE = 25;

/** u · min((2^N − 1)·b, cap), N = n + 1; the default cap is ten base intervals. */
export const envoy = defineStrategy({
  summary: "Envoy's retries: fully jittered, up to ten base intervals",
  formula: 'u · min(maxInterval, (2^(n + 1) − 1) · baseInterval)',
  expectation: 'min(maxInterval, (2^(n + 1) − 1) · baseInterval) / 2',
  source: 'Envoy, HTTP router filter, x-envoy-max-retries',
  defaults: { baseInterval: ENVOY_BASE, maxInterval: 10 * ENVOY_BASE },
  derive: ({ baseInterval = ENVOY_BASE }) => ({ maxInterval: 10 * baseInterval }),
  delays: ({ baseInterval, maxInterval }) =>
    uniformDelay((n) => [0, scaleCapped(baseInterval, 2 ** (n + 1) - 1, maxInterval)]),
});
