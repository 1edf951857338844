import { describe, expect, test } from 'vitest';
import { divideConfig } from '../../../src/config/compile/divide-config.ts';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { compilePoll } from '../../../src/config/compile/compile-policy.ts';
import { diffConfigs } from '../../../src/config/load/config-diff.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';

const written = (route: string) => `upstreams: {api: {url: http://a}}\nroutes: [{upstream: api, ${route}}]\n`;

function load(route: string) {
  const loaded = loadConfig(written(route), 'f.yaml', { env: {}, readFile: String });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded;
}

function mistakes(route: string): string[] {
  const loaded = loadConfig(written(route), 'f.yaml', { env: {}, readFile: String });
  return loaded.kind === 'ok' ? [] : strip(formatMistakes(loaded.mistakes));
}

const warnings = (route: string) => strip(formatWarnings(load(route).warnings));

function strip(lines: string): string[] {
  return lines === '' ? [] : lines.split('\n').map((line) => line.replace(/^f\.yaml:\d+:\d+ /, ''));
}

const pollOf = ({ routes }: Config) => compilePoll(routes[0]?.poll);

describe('the defaults', () => {
  test('poll nothing unless a route enables it', () => {
    expect(pollOf(load('path: /').config)).toBeUndefined();
  });

  test('poll a 202, with delays that grow and never shrink', () => {
    const policy = pollOf(load('poll: {}').config);
    expect(policy).toMatchObject({ notReady: new Set([202]), maxWait: 60_000, maxPolls: 50, maxWaiting: 1000 });
    const delays = (chance: number) =>
      Array.from({ length: 12 }, (_, n) => policy?.backOff.next(n, 0, () => chance)?.delay ?? 0);
    const [least, most] = [delays(0), delays(1 - Number.EPSILON)];
    expect(least[0]).toBeCloseTo(800);
    expect(most.at(-1)).toBe(30_000);
    for (let n = 1; n < 8; n += 1) expect(least[n]).toBeGreaterThanOrEqual((most[n - 1] ?? 0) - 1);
  });

  test('are the same, whether they are written or omitted', () => {
    const full =
      'poll: {backOff: {strategy: exponential-jitter, baseInterval: 1s, multiplier: 1.5, maxInterval: 30s, jitter: 0.2}}';
    const options = (route: string) => load(route).config.routes[0]?.poll;
    expect(options('poll: {}')).toEqual(options(full));
  });

  test('apply to the omitted options of a backOff, unless it names another strategy', () => {
    const delay = (route: string) => pollOf(load(route).config)?.backOff.next(0, 0, () => 0.5)?.delay;
    expect(delay('poll: {backOff: {baseInterval: 4s}}')).toBe(4000);
    expect(delay('poll: {backOff: {strategy: fixed}}')).not.toBe(1000);
  });
});

describe('mistakes', () => {
  test.each([
    [
      'notReady: [200]',
      'routes[0].poll.notReady[0]: a 200 means that the result is ready: its body is not examined (did you mean 202?)',
    ],
    [
      'notReady: [429]',
      'routes[0].poll.notReady[0]: a 429 is a rejection by the rate limit, and is retried when the rate allows it',
    ],
    ['notReady: [503]', 'routes[0].poll.notReady[0]: a 5xx is a failure: retry.retryOn decides whether it is retried'],
    ['notReady: [102]', 'routes[0].poll.notReady[0]: expected a status from 201 to 499'],
    ['notReady: [soon]', 'routes[0].poll.notReady[0]: expected a status from 201 to 499'],
    ['notReady: []', 'routes[0].poll.notReady: must not be empty'],
    ['maxWait: 500ms', 'routes[0].poll.maxWait: must be from 1s to 1h'],
    ['maxWait: 2h', 'routes[0].poll.maxWait: must be from 1s to 1h'],
    ['backOff: {baseInterval: 60s}', 'routes[0].poll.backOff.baseInterval: maxInterval is below baseInterval'],
    ['maxWaits: 5s', 'routes[0].poll.maxWaits: unknown key (did you mean maxWait?)'],
  ])('%s', (poll, expected) => {
    expect(mistakes(`poll: {${poll}}`)).toEqual([expected]);
  });

  test('rejects a status that is both not ready and retried', () => {
    const found =
      'routes[0].poll.notReady[1]: a 404 is also in retry.retryOn: a response that is not ready is not a failure';
    expect(mistakes('poll: {notReady: [202, 404]}, retry: {retryOn: [5xx, "404"]}')).toEqual([found]);
  });

  test('accepts statuses as text', () => {
    expect(load('poll: {notReady: ["202", 404, 304]}').config.routes[0]?.poll?.notReady).toEqual([202, 404, 304]);
  });
});

test('settings without effect are reported', () => {
  expect(warnings('poll: {}')).toEqual([]);
  expect(warnings('methods: [GET, POST], poll: {}')).toEqual([]);
  expect(warnings('methods: [POST], poll: {}')).toEqual([
    'warning: routes[0].poll: has no effect: only GET and HEAD are polled, and this route matches neither',
  ]);
  expect(warnings('poll: {backOff: {jitterInterval: 1s}}')).toEqual([
    'warning: routes[0].poll.backOff.jitterInterval: exponential-jitter does not use it',
  ]);
  expect(warnings('poll: {maxWait: 5s, backOff: {baseInterval: 5s}}')).toEqual([
    'warning: routes[0].poll.maxWait: not longer than the first delay of backOff: no second poll is made',
  ]);
});

test('check reports the cost of polls', () => {
  const report = (route: string) =>
    runCheck('f.yaml', { full: false }, { env: {}, readFile: () => written(route) }).text;
  const summary =
    '    polls: for Prefer: wait, up to 50 times as many sends and a response within 70s; at most 1000 such clients at a time\n';
  expect(report('poll: {}')).toContain(summary);
  expect(report('path: /')).not.toContain('polls:');
  expect(report('methods: [POST], poll: {}')).not.toContain('polls:');
});

test('a reload applies changes of poll without a restart', () => {
  const changes = diffConfigs(load('poll: {}'), load('poll: {maxWaiting: 5}'));
  expect(changes).toMatchObject([{ path: 'routes["/"].poll.maxWaiting', from: '1000', to: '5', needsRestart: false }]);
  expect(diffConfigs(load('path: /'), load('poll: {}'))).toMatchObject([{ kind: 'added', needsRestart: false }]);
});

test('several workers divide the bound on waiting polls', () => {
  const { config } = load('poll: {maxWaiting: 9}');
  expect(divideConfig(config, 4).routes[0]?.poll?.maxWaiting).toBe(2);
  expect(divideConfig(load('path: /').config, 4).routes).toEqual(load('path: /').config.routes);
});
