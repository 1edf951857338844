/** Quotas and rates of classes and of single clients, in the configuration. */
import { describe, expect, test } from 'vitest';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { compileRatePolicies } from '../../../src/config/compile/compile-clients.ts';
import { compileUpstreams } from '../../../src/config/compile/compile-policy.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';

const DATABASE = 'state: {store: sqlite, file: state.db}';
const AUTH = 'auth: {apiKeys: {file: clients.keys}}, ';

function textOf(ofClass: string, auth = AUTH, state = DATABASE): string {
  return `upstreams: {api: {url: "https://a"}}
${state}
clients: {${auth}classes: {partners: {match: {key: ["partner-*"]}, ${ofClass}}}}`;
}

const environment = { env: {}, readFile: () => '' };

function load(...parts: Parameters<typeof textOf>) {
  return loadConfig(textOf(...parts), 'tidegate.yaml', environment);
}

function configOf(ofClass: string): Config {
  const loaded = load(ofClass);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config;
}

/** Mistakes or warnings, each without file, line and column. */
function findingsOf(...parts: Parameters<typeof textOf>): string[] {
  const loaded = load(...parts);
  const findings = formatMistakes(loaded.kind === 'mistakes' ? loaded.mistakes : loaded.warnings);
  return findings === '' ? [] : findings.split('\n').map((line) => line.replace(/^tidegate\.yaml:\d+:\d+ /, ''));
}

const DAY = {
  reserve: 0,
  pace: 'asNeeded',
  period: { kind: 'calendar', unit: 'day', timeZone: 'UTC', offsetAt: expect.any(Function) as unknown },
};

describe('a quota of clients', () => {
  test('may be text, a mapping or a list, and its name begins with that of the class', () => {
    const config = configOf(
      'quota: [10000/day, {name: slow, limit: 9, per: rolling 1h}], perClient: {quota: 1000/day}',
    );
    expect(compileUpstreams(config)[0]?.classQuotas).toEqual([
      {
        className: 'partners',
        shared: [
          { name: 'class:partners/day', limit: 10_000, ...DAY },
          {
            ...{ name: 'class:partners/slow', limit: 9, reserve: 0, pace: 'asNeeded' },
            period: { kind: 'rolling', length: 3_600_000 },
          },
        ],
        perClient: [{ name: 'class:partners/client/day', limit: 1000, ...DAY }],
        needsProof: true,
      },
    ]);
  });

  test('and the rates make one RateLimit-Policy', () => {
    const config = configOf('maxRate: 20/s, quota: [5/day, 9/month], perClient: {maxRate: 2/s, quota: 1/rolling 24h}');
    const policies = [
      ...['"class:partners";q=20;w=1', '"class:partners/client";q=2;w=1', '"class:partners/day";q=5;w=86400'],
      ...['"class:partners/month";q=9', '"class:partners/client/rolling-24h";q=1;w=86400'],
    ];
    expect(compileRatePolicies(config.clients).get('partners')).toEqual({
      proven: policies.join(', '),
      unproven: '"class:partners";q=20;w=1',
    });
  });

  test('is named to clients that have not proven their names where clients.auth is absent', () => {
    const loaded = load('quota: 5/day', '');
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    const { clients } = loaded.config;
    expect(compileRatePolicies(clients).get('partners')?.unproven).toBe('"class:partners/day";q=5;w=86400');
    expect(compileUpstreams(loaded.config)[0]?.classQuotas).toMatchObject([{ needsProof: false }]);
  });

  test.each([
    ['quota: 100', 'quota: expected a quota such as 10000/day or 1000/rolling 24h, or a mapping with limit and per'],
    [
      'quota: 100/dya',
      'quota: after /, expected hour, day, week, month, or a rolling period such as rolling 24h (did you mean 100/day?)',
    ],
    [
      'quota: 100/24h',
      'quota: after /, expected hour, day, week, month, or a rolling period such as rolling 24h (did you mean 100/rolling 24h?)',
    ],
    ['quota: 0/day', 'quota: expected a quota such as 10000/day or 1000/rolling 24h, or a mapping with limit and per'],
    ['quota: [1/day, 2/day]', 'quota[1]: quota[0] already has the name day: set a different name'],
    [
      'perClient: {quota: {limit: 1, per: rolling 1h, timezone: UTC}}',
      'perClient.quota.timezone: has no effect on a rolling period: leave it out',
    ],
  ])('%s is a mistake', (ofClass, message) => {
    expect(findingsOf(ofClass)).toEqual([`clients.classes.partners.${message}`]);
  });

  test.each(['quota: {limit: 1, per: day, KEY}', 'perClient: {quota: [1/hour, {limit: 1, per: day, KEY}]}'])(
    'has neither a reserve nor a pace: %s',
    (ofClass) => {
      expect(findingsOf(ofClass.replace('KEY', 'reserve: 1')).join('')).toMatch(
        /reserve: quotas of clients have no reserve: all clients of a class have one weight$/,
      );
      expect(findingsOf(ofClass.replace('KEY', 'pace: even')).join('')).toMatch(
        /pace: quotas of clients have no pace: limit their rate with maxRate$/,
      );
    },
  );

  test('is accepted with a warning if a restart forgets it', () => {
    const message = 'a restart resets the count; set state: {store: sqlite, file: …} to keep it';
    expect(findingsOf('quota: 1/day, perClient: {quota: 1/day}', AUTH, '')).toEqual([
      `clients.classes.partners.quota: ${message}`,
      `clients.classes.partners.perClient.quota: ${message}`,
    ]);
    expect(findingsOf('quota: 1/day, perClient: {quota: 1/day}')).toEqual([]);
  });
});

describe('perClient', () => {
  test('needs clients.auth', () => {
    expect(findingsOf('perClient: {maxRate: 1/s}', '')).toEqual([
      'clients.classes.partners.perClient: needs clients.auth: without it, a client that has used up its quota or rate can claim another name',
    ]);
    expect(findingsOf('quota: 1/day', '')).toEqual([]);
  });

  test('limits something', () => {
    expect(findingsOf('perClient: {}')).toEqual([
      'clients.classes.partners.perClient: set maxRate, quota or both, or leave it out',
    ]);
  });
});

describe('a class that matches by a header', () => {
  const warningsOf = (classes: string): string[] => {
    const text = textOf('').replace(/classes: .*$/, `classes: {${classes}}}`);
    const loaded = loadConfig(text, 'tidegate.yaml', environment);
    const warnings = formatMistakes(loaded.kind === 'mistakes' ? loaded.mistakes : loaded.warnings);
    return warnings === '' ? [] : warnings.split('\n').map((line) => line.replace(/^tidegate\.yaml:\d+:\d+ /, ''));
  };
  const byHeader = 'match: {header: {x-app: shop}}';
  const partners = 'partners: {match: {key: ["partner-*"]}, quota: 1/day}';

  test.each(['quota', 'perClient'])('is accepted with a warning if its clients can leave its %s', (key) => {
    const value = key === 'quota' ? '1/day' : '{quota: 1/day}';
    expect(warningsOf(`shop: {${byHeader}, ${key}: ${value}}`)).toEqual([
      `clients.classes.shop.match.header: a client can leave a class with ${key} by omitting this header: match by key, the name of the client`,
    ]);
  });

  test('is accepted with a warning if clients of a later class can choose it to leave their quota', () => {
    expect(warningsOf(`fast: {${byHeader}}, ${partners}`)).toEqual([
      'clients.classes.fast.match.header: a client can leave the class partners, which has a quota or perClient, by sending this header: match by key, or move this class after it',
    ]);
    expect(warningsOf(`${partners}, fast: {${byHeader}}`)).toEqual([]);
  });
});

test('check describes the quotas and rates of classes and of their clients', () => {
  const ofClass =
    'maxRate: 20/s, quota: {limit: 10000, per: day, timezone: Europe/Berlin}, perClient: {maxRate: 2/s, quota: {limit: 9, per: month}}';
  const { text } = runCheck(
    'tidegate.yaml',
    { full: false },
    {
      env: {},
      readFile: (path: string) => (path === 'tidegate.yaml' ? textOf(ofClass) : ''),
    },
  );
  const lines = text.split('\n');
  const from = lines.indexOf('Limits:');
  expect(lines.slice(from + 3, from + 7)).toEqual([
    '    class partners: 20/s for all its clients together',
    '    class partners: 10000 requests per day in Europe/Berlin for all its clients together',
    '    class partners: 2/s for each of its clients',
    '    class partners: 9 requests per month for each of its clients',
  ]);
});

test('check counts the memory of quotas of single clients at all upstreams', () => {
  const text = textOf('perClient: {quota: [1/day, 1/rolling 1h]}').replace(
    'upstreams: {',
    'routes: [{upstream: api}]\nupstreams: {other: {url: "https://b"}, ',
  );
  const report = runCheck(
    'tidegate.yaml',
    { full: false },
    { env: {}, readFile: (path) => (path === 'tidegate.yaml' ? text : '') },
  );
  // 8 KiB for each of 100 000 clients at each of two upstreams.
  expect(report.text).toContain(
    '1563MiB: quotas of single clients, for 100000 clients at each upstream; a tenth of the heap at most',
  );
});
