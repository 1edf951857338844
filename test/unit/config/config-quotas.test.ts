import { describe, expect, test } from 'vitest';
import { compileQuotas } from '../../../src/config/compile/compile-quotas.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { QuotaConfig } from '../../../src/config/schema/limits/quota-schema.ts';

const DATABASE = 'state: {store: sqlite, file: state.db}';
const PRIORITY = 'clients: {classes: {web: {match: {key: [web]}, weight: 4}}}';

function load(quotas: string, rest = '') {
  const text = `upstreams: {api: {url: "https://a", quotas: [${quotas}]}}\n${rest}`;
  return loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
}

/** The quotas of a valid configuration. */
function quotasOf(quotas: string, rest = DATABASE): readonly QuotaConfig[] {
  const loaded = load(quotas, rest);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config.upstreams['api']?.quotas ?? [];
}

/** Mistakes or warnings, each without file, line and column. */
function findingsOf(quotas: string, rest = DATABASE): string[] {
  const loaded = load(quotas, rest);
  const findings = formatMistakes(loaded.kind === 'mistakes' ? loaded.mistakes : loaded.warnings);
  return findings === '' ? [] : findings.split('\n').map((line) => line.replace(/^tidegate\.yaml:\d+:\d+ /, ''));
}

describe('a quota', () => {
  test('has a name, a reserve and a pace by default', () => {
    expect(quotasOf('{limit: 10000, per: day}')).toEqual([
      { limit: 10_000, per: { kind: 'calendar', unit: 'day' }, reserve: { share: 0 }, pace: 'asNeeded' },
    ]);
  });

  test('is compiled to requests, a name and a period', () => {
    const quotas = quotasOf(
      '{limit: 999, per: month, timezone: America/Los_Angeles, reserve: 10%, pace: even}, {limit: 9, per: rolling 24h, reserve: 2}',
      `${DATABASE}\n${PRIORITY}`,
    );
    expect(compileQuotas(quotas)).toEqual([
      {
        name: 'month',
        limit: 999,
        reserve: 100,
        pace: 'even',
        period: {
          kind: 'calendar',
          unit: 'month',
          timeZone: 'America/Los_Angeles',
          offsetAt: expect.any(Function) as unknown,
        },
      },
      { name: 'rolling-24h', limit: 9, reserve: 2, pace: 'asNeeded', period: { kind: 'rolling', length: 86_400_000 } },
    ]);
  });

  test.each([
    [
      '{limit: 10, per: dya}',
      'upstreams.api.quotas[0].per: expected hour, day, week, month, or a rolling period such as rolling 24h (did you mean day?)',
    ],
    [
      '{limit: 10, per: 24h}',
      'upstreams.api.quotas[0].per: expected hour, day, week, month, or a rolling period such as rolling 24h (did you mean rolling 24h?)',
    ],
    [
      '{limit: 10, per: rolling 24}',
      'upstreams.api.quotas[0].per: after rolling, expected a duration such as 250ms, 2s, 1m or 24h (did you mean rolling 24h?)',
    ],
    [
      '{limit: 10, per: rolling 10s}',
      'upstreams.api.quotas[0].per: a rolling period must be at least 1m: use rateLimit.maxRate for a shorter one',
    ],
    [
      '{limit: 10, per: day, timezone: America/Los_Angelos}',
      'upstreams.api.quotas[0].timezone: no time zone has this name: expected an IANA name such as America/Los_Angeles or UTC (did you mean America/Los_Angeles?)',
    ],
    [
      '{limit: 10, per: day, timezone: "+02:00"}',
      'upstreams.api.quotas[0].timezone: no time zone has this name: expected an IANA name such as America/Los_Angeles or UTC',
    ],
    [
      '{limit: 10, per: rolling 1h, timezone: UTC}',
      'upstreams.api.quotas[0].timezone: has no effect on a rolling period: leave it out',
    ],
    [
      '{limit: 10, per: day, reserve: 10 %}',
      'upstreams.api.quotas[0].reserve: expected a share such as 10%, or a number of requests (did you mean 10%?)',
    ],
    [
      '{limit: 10, per: day, reserve: 0.1}',
      'upstreams.api.quotas[0].reserve: expected a share such as 10%, or a number of requests (did you mean 10%?)',
    ],
    [
      '{limit: 10, per: day, reserve: 10}',
      'upstreams.api.quotas[0].reserve: must be less than limit: requests without priority would never be sent',
    ],
    [
      '{limit: 10, per: day}, {limit: 20, per: day}',
      'upstreams.api.quotas[1]: quotas[0] already has the name day: set a different name',
    ],
  ])('%s is a mistake', (quotas, message) => {
    expect(findingsOf(quotas, `${DATABASE}\n${PRIORITY}`)).toEqual([message]);
  });

  test('is accepted with several workers, and with replicas over Redis', () => {
    expect(findingsOf('{limit: 10, per: day}', `workers: 2\n${DATABASE}`)).toEqual([]);
    const redis = 'secret: 0123456789abcdef0123456789abcdef\nstate: {store: redis, url: "redis://r:6379"}';
    expect(findingsOf('{limit: 10, per: day}', redis)).toEqual([]);
  });

  test('is accepted with a warning if a restart forgets it, or if no class may use its reserve', () => {
    expect(findingsOf('{limit: 10, per: day}', '')).toEqual([
      'upstreams.api.quotas: a restart resets the count; set state: {store: sqlite, file: …} to keep it',
    ]);
    expect(findingsOf('{limit: 10, per: day, reserve: 10%}')).toEqual([
      'upstreams.api.quotas[0].reserve: no class has a weight above 1, so no request may use the reserve: set clients.classes.NAME.weight',
    ]);
    expect(findingsOf('{limit: 10, per: day, reserve: 10%}', `${DATABASE}\n${PRIORITY}`)).toEqual([]);
  });
});
