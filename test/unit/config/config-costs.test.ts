import { describe, expect, test } from 'vitest';
import { compileCosts } from '../../../src/config/compile/compile-costs.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';

function load(cost: string, rest = '') {
  const text = `upstreams: {api: {url: "https://a", rateLimit: {cost: ${cost}}}}\n${rest}`;
  return loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
}

function costsOf(cost: string, rest = '') {
  const loaded = load(cost, rest);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { config } = loaded;
  return compileCosts(config, config.upstreams['api']!, config.routes[0]!);
}

/** Each mistake without file, line and column. */
function mistakesOf(cost: string, rest = ''): string[] {
  const loaded = load(cost, rest);
  if (loaded.kind !== 'mistakes') return [];
  return formatMistakes(loaded.mistakes)
    .split('\n')
    .map((line) => line.replace(/^tidegate\.yaml:\d+:\d+ /, ''));
}

const ANY_TEXT: unknown = expect.any(String);

describe('a cost', () => {
  test('is a number of units', () => {
    expect(costsOf('5')?.rules).toEqual([
      { limit: '', expected: 5, min: 0, max: 1_000_000_000, isSettled: false, unit: ANY_TEXT },
    ]);
  });

  test('is read where the configuration says', () => {
    const costs = costsOf(
      '{method: {POST: 5}, request: {header: X-Cost}, response: {json: [usage.in, usage.out]}, expected: 40, max: 900}',
    );
    expect(costs?.costs).toEqual([
      {
        rule: { limit: '', expected: 40, min: 1, max: 900, isSettled: true, unit: ANY_TEXT },
        byMethod: new Map([['POST', 5]]),
        request: { kind: 'header', name: 'x-cost' },
        response: {
          kind: 'json',
          fields: [
            ['usage', 'in'],
            ['usage', 'out'],
          ],
        },
        bucket: undefined,
      },
    ]);
  });

  test('of a route replaces that of its upstream, and that of a nested limit stands beside it', () => {
    const text = `
upstreams: {api: {url: "https://a", rateLimit: {cost: 2}, limits: [{name: tokens, cost: {response: {header: X-Tokens}, expected: 300, max: 9000}}]}}
routes: [{path: /, upstream: api}, {path: /heavy, upstream: api, cost: 25}]`;
    const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    const { config } = loaded;
    const expected = config.routes.map((route) =>
      compileCosts(config, config.upstreams['api']!, route)?.rules.map((rule) => [rule.limit, rule.expected]),
    );
    expect(expected).toEqual([
      [
        ['', 2],
        ['tokens', 300],
      ],
      [
        ['', 25],
        ['tokens', 300],
      ],
    ]);
  });

  test.each([
    ['-1', 'upstreams.api.rateLimit.cost'],
    ['{request: {header: X-Cost}}', 'upstreams.api.rateLimit.cost.request: needs max: the client chooses this cost'],
    [
      '{response: {header: X-Cost}, max: 9}',
      'upstreams.api.rateLimit.cost.response: needs expected: what a request is charged until its response names the cost',
    ],
    [
      '{response: {header: X-Cost}, expected: 1}',
      'upstreams.api.rateLimit.cost.response: needs max: the highest cost that one response may name',
    ],
    ['{expected: 1, max: 9, response: {}}', 'upstreams.api.rateLimit.cost.response: needs one of header and json'],
    [
      '{expected: 1, max: 9, response: {header: X, json: a}}',
      'upstreams.api.rateLimit.cost.response: needs one of header and json',
    ],
    ['{min: 5, max: 2}', 'upstreams.api.rateLimit.cost.min: min (5) is above max (2)'],
    [
      '{request: {header: X-Cost}, max: 500, method: {POST: 5000}}',
      'upstreams.api.rateLimit.cost.method.POST: must be from min (1) to max (500)',
    ],
    [
      '{request: {header: X-Cost}, max: 500, method: {GET: 0}}',
      'upstreams.api.rateLimit.cost.method.GET: must be from min (1) to max (500)',
    ],
    ['{request: {json: [a, b]}, max: 9}', 'upstreams.api.rateLimit.cost'],
    [
      '{expected: 1, max: 9, response: {header: X, bucket: {available: a, limit: b, refillRate: c}}}',
      'upstreams.api.rateLimit.cost.response.bucket: needs json: the bucket is read from the same body as the cost',
    ],
    ['{expected: 9, max: 2}', 'upstreams.api.rateLimit.cost.expected: must be from min (0) to max (2)'],
    ['{expected: 1, max: 9, response: {json: "a.*"}}', 'upstreams.api.rateLimit.cost'],
  ])('%s is a mistake', (cost, start) => {
    expect(mistakesOf(cost)).toEqual([expect.stringContaining(start)]);
  });

  test('is a mistake where several processes share the limit', () => {
    const place = 'upstreams.api.rateLimit.cost: processes that share a limit count requests, not units: ';
    expect(mistakesOf('5', 'workers: 2')).toEqual([`${place}set workers: 1`]);
    const redis = 'state: {store: redis, url: "redis://h", secret: s3cret-s3cret-s3cret}';
    expect(mistakesOf('5', redis)).toContain(`${place}use another store than redis`);
  });
});
