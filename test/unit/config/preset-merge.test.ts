import { describe, expect, test } from 'vitest';
import { mergePreset } from '../../../src/config/presets/preset-merge.ts';

/** The merged settings. */
function merge(written: object, preset: object): object {
  const both = structuredClone(written);
  mergePreset(both, structuredClone(preset));
  return both;
}

describe('a preset beneath written settings', () => {
  test('fills in settings that are not written, at any depth', () => {
    const preset = { timeout: '9s', retry: { attempts: 2, budget: { ratio: 0.1 } }, idempotency: { header: 'X-Once' } };
    expect(merge({}, preset)).toEqual(preset);
    expect(merge({ timeout: '1s', retry: { attempts: 5, budget: { burst: 3 } } }, preset)).toEqual({
      timeout: '1s',
      retry: { attempts: 5, budget: { burst: 3, ratio: 0.1 } },
      idempotency: { header: 'X-Once' },
    });
  });

  test('does not replace what is written, even if that is empty, false or of another type', () => {
    const preset = { retry: { attempts: 2 }, queue: { maxWait: '2s' }, idempotency: { header: 'X-Once' }, tls: {} };
    const written = { retry: null, queue: 'x', idempotency: { header: false }, tls: [] };
    expect(merge(written, preset)).toEqual(written);
  });

  test('has its lists replaced, not merged', () => {
    expect(merge({ retry: { retryOn: ['reset'] } }, { retry: { retryOn: ['5xx', 'lock'] } })).toEqual({
      retry: { retryOn: ['reset'] },
    });
    expect(merge({ retry: { retryOn: [] } }, { retry: { retryOn: ['5xx'] } })).toEqual({ retry: { retryOn: [] } });
  });

  test('reports what it added, as one entry if all of a mapping is new', () => {
    const preset = { timeout: '9s', retry: { attempts: 2, budget: { ratio: 0.1, burst: 1 } } };
    expect(mergePreset({ retry: { budget: { burst: 3 } } }, preset)).toEqual([
      ['timeout'],
      ['retry', 'attempts'],
      ['retry', 'budget', 'ratio'],
    ]);
  });

  test('adds no url beside a written one, or beside several', () => {
    const preset = { url: 'https://a', timeout: '1s' };
    expect(merge({ url: 'http://b' }, preset)).toEqual({ url: 'http://b', timeout: '1s' });
    expect(merge({ urls: ['http://b'] }, preset)).toEqual({ urls: ['http://b'], timeout: '1s' });
  });

  test('adds no initial rate beyond the written bounds', () => {
    const preset = { rateLimit: { initialRate: '600/m' } };
    const at = (rateLimit: object) => merge({ rateLimit }, preset);
    expect(at({ maxRate: '9/s' })).toEqual({ rateLimit: { maxRate: '9/s' } });
    expect(at({ maxRate: '10/s' })).toEqual({ rateLimit: { maxRate: '10/s', initialRate: '600/m' } });
    expect(at({ minRate: '11/s' })).toEqual({ rateLimit: { minRate: '11/s' } });
    expect(at({ minRate: '10/s' })).toEqual({ rateLimit: { minRate: '10/s', initialRate: '600/m' } });
    // An unreadable bound has no effect, and is reported as a mistake.
    expect(at({ maxRate: 9 })).toEqual({ rateLimit: { maxRate: 9, initialRate: '600/m' } });
  });
});

describe('a backoff in a preset', () => {
  const grpc = { strategy: 'grpc', maxInterval: '8s' };

  test('of the same strategy is merged option by option', () => {
    expect(merge({ retry: { backOff: { baseInterval: '1s' } } }, { retry: { backOff: grpc } })).toEqual({
      retry: { backOff: { ...grpc, baseInterval: '1s' } },
    });
    // The default strategy counts as one too.
    expect(
      merge({ retry: { backOff: { strategy: 'full-jitter' } } }, { retry: { backOff: { maxInterval: '8s' } } }),
    ).toEqual({ retry: { backOff: { strategy: 'full-jitter', maxInterval: '8s' } } });
  });

  test('of another strategy contributes no options', () => {
    const written = { retry: { backOff: { strategy: 'fixed', baseInterval: '1s' } } };
    expect(merge(written, { retry: { attempts: 3, backOff: grpc } })).toEqual({
      retry: { ...written.retry, attempts: 3 },
    });
    expect(merge(written, { retry: { backOff: { maxInterval: '8s' } } })).toEqual(written);
  });

  test('for a reason is merged independently of the other reasons', () => {
    const preset = { retry: { backOff: grpc, backOffFor: { lock: { strategy: 'fixed', baseInterval: '2s' } } } };
    expect(merge({ retry: { backOffFor: { lock: { baseInterval: '3s' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'fixed', baseInterval: '3s' } } },
    });
    expect(merge({ retry: { backOffFor: { lock: { strategy: 'sip' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'sip' } } },
    });
    // Its strategy does not depend on that of the other reasons.
    expect(merge({ retry: { backOff: { strategy: 'sip' } } }, preset)).toEqual({
      retry: { backOff: { strategy: 'sip' }, backOffFor: preset.retry.backOffFor },
    });
  });

  test('for a reason without a strategy inherits that of the backoff, and is dropped with it', () => {
    const preset = { retry: { backOff: grpc, backOffFor: { lock: { maxInterval: '2s' } } } };
    expect(merge({ retry: { backOff: { strategy: 'sip' } } }, preset)).toEqual({
      retry: { backOff: { strategy: 'sip' }, backOffFor: {} },
    });
    expect(merge({ retry: { backOffFor: { lock: { strategy: 'grpc' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'grpc', maxInterval: '2s' } } },
    });
  });
});
