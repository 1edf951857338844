import { describe, expect, test } from 'vitest';
import { layBeneath } from '../../src/config/presets/preset-merge.ts';

/** What stands there afterwards. */
function lay(written: object, preset: object): object {
  const both = structuredClone(written);
  layBeneath(both, structuredClone(preset));
  return both;
}

describe('a preset beneath what is written', () => {
  test('fills in what is not written, at any depth', () => {
    const preset = { timeout: '9s', retry: { attempts: 2, budget: { ratio: 0.1 } }, idempotency: { header: 'X-Once' } };
    expect(lay({}, preset)).toEqual(preset);
    expect(lay({ timeout: '1s', retry: { attempts: 5, budget: { burst: 3 } } }, preset)).toEqual({
      timeout: '1s',
      retry: { attempts: 5, budget: { burst: 3, ratio: 0.1 } },
      idempotency: { header: 'X-Once' },
    });
  });

  test('changes nothing that is written, be it empty, false or of another kind', () => {
    const preset = { retry: { attempts: 2 }, queue: { maxWait: '2s' }, idempotency: { header: 'X-Once' }, tls: {} };
    const written = { retry: null, queue: 'x', idempotency: { header: false }, tls: [] };
    expect(lay(written, preset)).toEqual(written);
  });

  test('has its lists replaced, not mixed', () => {
    expect(lay({ retry: { retryOn: ['reset'] } }, { retry: { retryOn: ['5xx', 'lock'] } })).toEqual({
      retry: { retryOn: ['reset'] },
    });
    expect(lay({ retry: { retryOn: [] } }, { retry: { retryOn: ['5xx'] } })).toEqual({ retry: { retryOn: [] } });
  });

  test('says what it added, whole where all of it is new', () => {
    const preset = { timeout: '9s', retry: { attempts: 2, budget: { ratio: 0.1, burst: 1 } } };
    expect(layBeneath({ retry: { budget: { burst: 3 } } }, preset)).toEqual([
      ['timeout'],
      ['retry', 'attempts'],
      ['retry', 'budget', 'ratio'],
    ]);
  });

  test('has no url beside one that is written, nor beside several', () => {
    const preset = { url: 'https://a', timeout: '1s' };
    expect(lay({ url: 'http://b' }, preset)).toEqual({ url: 'http://b', timeout: '1s' });
    expect(lay({ urls: ['http://b'] }, preset)).toEqual({ urls: ['http://b'], timeout: '1s' });
  });

  test('has no rate to begin with beyond the bounds that are written', () => {
    const preset = { rateLimit: { initialRate: '600/m' } };
    const at = (rateLimit: object) => lay({ rateLimit }, preset);
    expect(at({ maxRate: '9/s' })).toEqual({ rateLimit: { maxRate: '9/s' } });
    expect(at({ maxRate: '10/s' })).toEqual({ rateLimit: { maxRate: '10/s', initialRate: '600/m' } });
    expect(at({ minRate: '11/s' })).toEqual({ rateLimit: { minRate: '11/s' } });
    expect(at({ minRate: '10/s' })).toEqual({ rateLimit: { minRate: '10/s', initialRate: '600/m' } });
    // What cannot be read bounds nothing, and is told of as a mistake.
    expect(at({ maxRate: 9 })).toEqual({ rateLimit: { maxRate: 9, initialRate: '600/m' } });
  });
});

describe('a backoff', () => {
  const grpc = { strategy: 'grpc', maxInterval: '8s' };

  test('of the same strategy is filled in, option by option', () => {
    expect(lay({ retry: { backOff: { baseInterval: '1s' } } }, { retry: { backOff: grpc } })).toEqual({
      retry: { backOff: { ...grpc, baseInterval: '1s' } },
    });
    // The usual strategy is one as well.
    expect(
      lay({ retry: { backOff: { strategy: 'full-jitter' } } }, { retry: { backOff: { maxInterval: '8s' } } }),
    ).toEqual({ retry: { backOff: { strategy: 'full-jitter', maxInterval: '8s' } } });
  });

  test('of another strategy has none of the preset’s options', () => {
    const written = { retry: { backOff: { strategy: 'fixed', baseInterval: '1s' } } };
    expect(lay(written, { retry: { attempts: 3, backOff: grpc } })).toEqual({
      retry: { ...written.retry, attempts: 3 },
    });
    expect(lay(written, { retry: { backOff: { maxInterval: '8s' } } })).toEqual(written);
  });

  test('for a reason is one of its own', () => {
    const preset = { retry: { backOff: grpc, backOffFor: { lock: { strategy: 'fixed', baseInterval: '2s' } } } };
    expect(lay({ retry: { backOffFor: { lock: { baseInterval: '3s' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'fixed', baseInterval: '3s' } } },
    });
    expect(lay({ retry: { backOffFor: { lock: { strategy: 'sip' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'sip' } } },
    });
    // Its strategy does not hang on that of the others.
    expect(lay({ retry: { backOff: { strategy: 'sip' } } }, preset)).toEqual({
      retry: { backOff: { strategy: 'sip' }, backOffFor: preset.retry.backOffFor },
    });
  });

  test('for a reason that names no strategy has that of the backoff, and goes with it', () => {
    const preset = { retry: { backOff: grpc, backOffFor: { lock: { maxInterval: '2s' } } } };
    expect(lay({ retry: { backOff: { strategy: 'sip' } } }, preset)).toEqual({
      retry: { backOff: { strategy: 'sip' }, backOffFor: {} },
    });
    expect(lay({ retry: { backOffFor: { lock: { strategy: 'grpc' } } } }, preset)).toEqual({
      retry: { backOff: grpc, backOffFor: { lock: { strategy: 'grpc', maxInterval: '2s' } } },
    });
  });
});
