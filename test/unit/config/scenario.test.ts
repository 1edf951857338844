import { describe, expect, test } from 'vitest';
import { readFile } from '../../../src/cli/read-file.ts';
import { compileScenario } from '../../../src/simulator/scenario-file/compile-scenario.ts';
import { compilePlan, compileUpstreams } from '../../../src/config/compile/compile-policy.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { loadScenario } from '../../../src/simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { PROVIDERS } from '../../../src/config/presets/providers.ts';
import type { ScenarioConfig } from '../../../src/simulator/scenario-file/scenario-schema.ts';

const surroundings = { env: { RATE: '40/s' }, readFile: () => '' };
const SOUND = 'upstream: {limit: {kind: unlimited}}\nclients: [{rate: 1/s}]\n';

function load(text: string): ScenarioConfig {
  const read = loadScenario(text, 's.yaml', surroundings);
  if (read.kind === 'mistakes') throw new Error(formatMistakes(read.mistakes));
  return read.value;
}

/** The mistakes of a scenario, one a line. */
function mistakesOf(text: string): string[] {
  const read = loadScenario(text, 's.yaml', surroundings);
  return read.kind === 'ok' ? [] : formatMistakes(read.mistakes).split('\n');
}

/** The mistakes caused by a line added to a valid scenario, without its position. */
function mistakesOfLine(line: string): string[] {
  const key = line.slice(0, line.indexOf(':'));
  const rest = SOUND.split('\n').filter((each) => !each.startsWith(`${key}:`));
  return mistakesOf([...rest, line].join('\n')).map((mistake) => mistake.replace(/^s\.yaml:\d+:\d+ /, ''));
}

test('durations, rates and the policy have the syntax of a configuration', () => {
  const config = load(`
duration: 90s
warmup: 15s
upstream:
  limit: {kind: gcra, rate: "\${RATE}", burst: 3}
  latency: 20ms
  refusalLatency: {kind: uniform, mean: 2ms, spread: 1ms}
  hints: retry-after
  retryAfter: 60s
  steps: [{at: 10s, limit: 120/m}]
  errors: [{probability: 0.5, to: 5s}]
  outages: [{from: 1s, to: 2s}]
clients:
  - {name: a, count: 4, total: 20/s, steps: [{at: 9s, total: 0}, {at: 3s, rate: 1/s}], to: 20s}
policy: {rateLimit: {maxRate: 50/s}, queue: {maxWait: 0}, retry: {attempts: 1}}
`);
  expect(compileScenario('test', config)).toMatchObject({
    name: 'test',
    duration: 90_000,
    warmup: 15_000,
    upstream: {
      limit: { kind: 'gcra', rate: 40, burst: 3 },
      latency: { kind: 'constant', mean: 20 },
      refusalLatency: { kind: 'uniform', mean: 2, spread: 1 },
      hints: 'retry-after',
      retryAfter: 60_000,
      steps: [{ at: 10_000, limit: 2 }],
      errors: [{ probability: 0.5, to: 5000 }],
      outages: [{ from: 1000, to: 2000, how: 'refuse' }],
    },
    clients: [
      {
        name: 'a',
        count: 4,
        rate: 5,
        to: 20_000,
        steps: [
          { at: 3000, rate: 1 },
          { at: 9000, rate: 0 },
        ],
      }, // valid
    ],
    policy: { rate: { maxRate: 50 }, queue: { maxWait: 0 }, plan: { retry: { attempts: 1 } } },
  });
});

test('the default policy is that of an empty configuration', () => {
  const loaded = loadConfig('upstreams: {upstream: {url: https://a}}', 'c.yaml', surroundings);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { policy } = compileScenario('test', load(SOUND));
  const { plan, ...settings } = policy;
  const { upstream } = loaded.config.upstreams;
  expect([{ name: 'upstream', ...settings }]).toEqual(compileUpstreams(loaded.config));
  expect(JSON.stringify(plan)).toBe(JSON.stringify(compilePlan(upstream!.retry, upstream!)));
});

test('a provider has the same meaning as in a configuration', () => {
  const known = { env: {}, readFile };
  const read = loadScenario(`${SOUND}policy: {provider: stripe, retry: {attempts: 2}, maxTracked: 9}`, 's.yaml', known);
  const loaded = loadConfig('upstreams: {upstream: {provider: stripe, retry: {attempts: 2}}}', 'c.yaml', known);
  if (read.kind === 'mistakes' || loaded.kind === 'mistakes') throw new Error('it is invalid');
  const { plan, ...settings } = compileScenario('test', read.value).policy;
  expect(settings.rate.initialRate).toBe(100);
  expect([{ name: 'upstream', ...settings }]).toEqual(compileUpstreams(loaded.config));
  const { upstream } = loaded.config.upstreams;
  expect(JSON.stringify(plan)).toBe(JSON.stringify(compilePlan(upstream!.retry, upstream!)));
  expect(mistakesOfLine('policy: {provider: strpe}')).toEqual([
    expect.stringMatching(/^policy\.provider: .*mean stripe\?\)$/),
  ]);
});

test('every provider works in a scenario, whatever other settings its preset has', () => {
  for (const provider of PROVIDERS) {
    const read = loadScenario(`${SOUND}policy: {provider: ${provider}}`, 's.yaml', { env: {}, readFile });
    expect(read.kind === 'ok' ? read.warnings : formatMistakes(read.mistakes)).toEqual([]);
  }
});

test('a scenario runs in enforce mode, or in observe mode if it sets that', () => {
  const modeOf = (text: string) => compileScenario('test', load(text)).policy.plan.mode;
  expect(modeOf(SOUND)).toBe('enforce');
  expect(modeOf(`${SOUND}mode: observe\n`)).toBe('observe');
  expect(mistakesOfLine('mode: watch')).toEqual(['mode: expected one of enforce, observe']);
});

test('reports all mistakes at once, with places and suggestions', () => {
  expect(
    mistakesOf(`duraton: 10s
upstream:
  limit: {kind: token-buket, rate: 10/s}
  latency: 50
clients:
  - {nme: a, rate: 10}
policy:
  retry: {atempts: 2}
  attempts: 2
shared: 1
goals: {goodput: 0.9, waste: "< 0.1", latency: {p99: ">= 3"}}
`),
  ).toEqual([
    's.yaml:1:1 duraton: unknown key (did you mean duration?)',
    's.yaml:3:17 upstream.limit.kind: expected one of token-bucket, gcra, fixed-window, sliding-window, sliding-window-counting, blackout, concurrency, unlimited, workers (did you mean token-bucket?)',
    's.yaml:4:12 upstream.latency: a duration needs a unit (did you mean 50ms or 50s?)',
    's.yaml:6:6 clients[0].nme: unknown key (did you mean name?)',
    's.yaml:6:20 clients[0].rate: a rate needs a unit (did you mean 10/s?)',
    's.yaml:8:11 policy.retry.atempts: unknown key (did you mean attempts?)',
    's.yaml:9:3 policy.attempts: unknown key (did you mean retry.attempts?)',
    's.yaml:10:9 shared: expected true or false, got a number',
    's.yaml:11:18 goals.goodput: expected a bound such as ">= 0.92" or "<= 0.01"',
    's.yaml:11:30 goals.waste: expected a bound such as ">= 0.92" or "<= 0.01"',
    's.yaml:11:54 goals.latency.p99: expected a duration such as 250ms, 2s, 1m or 24h (did you mean >= 3ms or 3s?)',
  ]);
});

test('reports every required key for an empty file', () => {
  expect(mistakesOf('')).toEqual(['s.yaml:1:1 upstream: missing', 's.yaml:1:1 clients: missing']);
});

test('warns of events after the end of the run', () => {
  const read = loadScenario(`duration: 60s\n${SOUND}pauses: [{from: 60s, to: 70s}]`, 's.yaml', surroundings);
  expect(read.kind === 'ok' && read.warnings.map(({ path, message }) => [path, message])).toEqual([
    ['pauses[0].from', 'not before the end of the run (1m): it never begins'],
  ]);
});

describe('consistency between settings', () => {
  const STEPS = 'upstream: {latency: 5ms, limit: {kind: concurrency, limit: 5}, steps: [{at: 1s, limit: 40/s}]}';
  test.each([
    ['duration: 25h', ['duration: must be at most 24h']],
    ['warmup: 2m', ['warmup: not shorter than duration (2m): nothing would be counted']],
    ['pauses: [{from: 5s, to: 5s}]', ['pauses[0].to: not after from']],
    ['pauses: [{from: 5s, to: 9s}, {from: 8s, to: 10s}]', ['pauses[1]: begins before the one above has ended']],
    ['clients: [{rate: 1/s, total: 1/s}]', ['clients[0].total: rate (of each) or total (of all), not both']],
    ['clients: [{count: 2}]', ['clients[0]: rate (of each) or total (of all) is required']],
    [
      'clients: [{rate: 1/s, steps: [{at: 1s}]}]',
      ['clients[0].steps[0]: rate (of each) or total (of all) is required'],
    ],
    ['clients: [{rate: 1/s}, {rate: 2/s}]', ['clients[1].name: another group has this name']],
    ['clients: [{rate: 1/s, from: 2s, to: 1s}]', ['clients[0].to: not after from']],
    ['clients: []', ['clients: must not be empty']],
    [
      'upstream: {limit: {kind: concurrency, limit: 5}}',
      ['upstream.latency: required with kind concurrency: the number of requests in flight depends on it'],
    ],
    [
      'upstream: {limit: {kind: workers, workers: 5}}',
      ['upstream.latency: required with kind workers: the number of requests in flight depends on it'],
    ],
    [
      'upstream: {latency: 5ms, limit: {kind: workers, workers: 5, slowdowns: [{factor: 2, from: 9s, to: 5s}]}}',
      ['upstream.limit.slowdowns[0].to: not after from'],
    ],
    [
      'upstream: {latency: 5ms, limit: {kind: workers, workers: 5, slowdowns: [{factor: 2, every: 9s}]}}',
      [
        'upstream.limit.slowdowns[0]: every (the length of a period) and lasting (how long it is slow in each) need each other',
      ],
    ],
    [
      'upstream: {latency: 5ms, limit: {kind: workers, workers: 5}, steps: [{at: 1s, limit: 40/s}]}',
      ['upstream.steps[0].limit: with kind workers, a number such as 40 is expected'],
    ],
    [
      'upstream: {limit: {kind: unlimited}, limits: [{name: slow, limit: {kind: workers, workers: 5}}]}',
      [
        'upstream.limits[0].limit.kind: expected one of token-bucket, gcra, fixed-window, sliding-window, sliding-window-counting, blackout, concurrency, unlimited',
      ],
    ],
    [STEPS, ['upstream.steps[0].limit: with kind concurrency, a number such as 40 is expected']],
    [
      STEPS.replace('concurrency, limit: 5', 'gcra, rate: 5/s').replace('40/s', '40'),
      ['upstream.steps[0].limit: with kind gcra, a rate such as 40/s is expected'],
    ],
    [
      'goals: {groups: {client: {jain: ">= 1"}}}',
      ['goals.groups.client: no group has this name (did you mean clients?)'],
    ],
    ['policy: {rateLimit: {initialRate: 9/s, maxRate: 5/s}}', ['policy.rateLimit.initialRate: above maxRate']],
  ])('%s', (line, mistakes) => {
    expect(mistakesOfLine(line)).toEqual(mistakes);
  });
});
