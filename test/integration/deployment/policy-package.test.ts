import { describe, expect, test } from 'vitest';
import { backoffs, ConfigError, simulate } from '../../../src/library/policy.ts';
import type { ScenarioInput } from '../../../src/library/policy.ts';
import { strategyNames } from '../../../src/core/backoff/strategies.ts';
import { firstOf } from '../../support/first-of.ts';
import { run } from '../../support/proxy/process.ts';

const SCENARIO: ScenarioInput = {
  duration: '20s',
  warmup: '5s',
  upstream: { limit: { kind: 'token-bucket', rate: '50/s', burst: 5 }, latency: '20ms' },
  clients: [{ count: 5, total: '100/s' }],
  goals: { goodput: '>= 0.5', waste: '<= 0' },
};

describe('backoffs', () => {
  test('export all strategies, each with its formula and its source', () => {
    expect(Object.keys(backoffs)).toEqual(strategyNames);
    expect(backoffs['full-jitter']).toMatchObject({ name: 'full-jitter', defaults: { baseInterval: 100 } });
    for (const { formula, source, summary } of Object.values(backoffs)) {
      expect([formula, source, summary].every((text) => text.length > 0)).toBe(true);
    }
  });

  test('accept options in configuration syntax or in milliseconds', () => {
    const written = backoffs.exponential.make({ baseInterval: '1s', multiplier: 3, maxInterval: '1m' });
    expect(written.options).toEqual({ baseInterval: 1000, multiplier: 3, maxInterval: 60_000 });
    expect(firstOf(backoffs.exponential.delays({ baseInterval: 250 }), 3)).toEqual([250, 500, 1000]);
  });

  test('pass their state on, and end where they give up', () => {
    expect([...backoffs.doubling.delays({ maxInterval: '4s' })]).toEqual([1000, 2000, 4000]);
    // s = U(b, 3s), from b: 100 → 200 → 350 in the middle.
    expect(
      firstOf(
        backoffs['decorrelated-jitter'].delays({}, () => 0.5),
        2,
      ),
    ).toEqual([200, 350]);
  });

  test('report invalid options', () => {
    expect(() => backoffs.fixed.make({ baseInterval: '1 sec' })).toThrow(
      'baseInterval: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 1s?)',
    );
    expect(() => backoffs.fixed.make({ baseInterval: -5 })).toThrow(TypeError);
    expect(() => backoffs.fixed.make({ baseIntervall: 1 } as never)).toThrow(
      'the backoff fixed has no option baseIntervall (did you mean baseInterval?)',
    );
    expect(() => backoffs.doubling.delays({ maxIntervall: 1 } as never)).toThrow('did you mean maxInterval?');
    expect(() => backoffs.fixed.make(null as never)).toThrow('takes its options as an object, not null');
    expect(() => backoffs.exponential.make({ multiplier: 0.5 })).toThrow('multiplier must be at least 1, not 0.5');
  });
});

describe('simulate', () => {
  test('returns the same result as the command', async () => {
    const file = JSON.stringify(SCENARIO);
    const { stdout } = await run(['simulate', '/dev/stdin', '--json', '--seed', '7'], {}, file);
    const report = await simulate(SCENARIO, { seed: 7, name: '/dev/stdin' });
    expect(JSON.parse(JSON.stringify(report))).toEqual(JSON.parse(stdout));
    expect(report.seed).toBe(7);
    expect(report.goals.map(({ goal, met }) => [goal, met])).toEqual([
      ['goodput', true],
      ['waste', false],
    ]);
  });

  test('accepts YAML and provider presets', async () => {
    const yaml = `
duration: 5s
upstream: {limit: {kind: token-bucket, rate: 50/s, burst: 5}}
clients: [{total: 20/s}]
policy: {provider: stripe}
`;
    expect(await simulate(yaml)).toMatchObject({ scenario: 'scenario', span: 5000 });
  });

  test('reports all errors at once: by line in a text, by path in an object', async () => {
    const text = 'upstream: {limit: {kind: token-bucket, rate: 50, burst: 5}}\nclient: []\n';
    await expect(simulate(text, { name: 'mine.yaml' })).rejects.toThrow(
      /^mine\.yaml:1:1 clients: missing\nmine\.yaml:1:46 .*50\/s.*\nmine\.yaml:2:1 client: unknown key/,
    );
    const wrong = { ...SCENARIO, duration: 20, goals: { goodputt: '>= 0.5' } };
    try {
      await simulate(wrong as never);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect((error as ConfigError).mistakes.map(({ path }) => path)).toEqual(['duration', 'goals.goodputt']);
      expect(String(error)).toContain('scenario: goals.goodputt: unknown key (did you mean goodput?)');
      expect(String(error)).toContain('scenario: duration: ');
    }
  });

  test('reports an object that cannot be serialized as an error', async () => {
    const cyclic: Record<string, unknown> = { ...SCENARIO };
    cyclic['title'] = cyclic;
    await expect(simulate(cyclic as never, { name: 'mine' })).rejects.toThrow(/^mine: title: holds itself$/);
  });

  test('takes the values of an object as they are', async () => {
    const report = await simulate({
      ...SCENARIO,
      clients: [{ name: 'a', total: '10/s' }],
      title: `of $\{NO_SUCH_VARIABLE}`,
    });
    expect(report.groups.map(({ name }) => name)).toEqual(['a']);
  });
});
