import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { EVERY_EVENT, limitOf, metricsOf, emitEvents } from '../../support/admin/metric-builders.ts';

describe('promtool check metrics', () => {
  function check(exposition: string) {
    const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], {
      input: exposition,
      encoding: 'utf8',
    });
    return { status, said: `${error ?? ''}${stdout}${stderr}` };
  }

  test('passes after startup', async () => {
    expect(check(await metricsOf().registry.metrics())).toEqual({ status: 0, said: '' });
  });

  test('passes with every feature in use', async () => {
    const metrics = metricsOf({
      limits: [
        limitOf({}),
        limitOf({
          scope: 'client',
          state: 'blocked',
          rate: 0.1,
          ceiling: 3,
          concurrencyLimit: 4,
          blockedUntil: 9_000,
          quotaLeft: 0.1,
          queued: 3,
        }),
      ],
      accounts: [{ upstream: 'payments', account: 'main', isQuarantined: true, probeAt: 1, inFlight: 1, rate: 3 }],
      budgets: new Map([['payments', 1]]),
      quotas: [
        {
          upstream: 'payments',
          name: 'day',
          limit: 10,
          reserve: 1,
          remaining: 5,
          resetAt: 1_700_086_400_000,
          exhaustedAt: Infinity,
        },
      ],
    });
    emitEvents(metrics, ...EVERY_EVENT);
    const exposition = await metrics.registry.metrics();
    for (const [, name] of exposition.matchAll(/^# HELP (tidegate_\w+)/gm)) {
      expect(exposition, `no sample of ${name}`).toMatch(new RegExp(`^${name}(_count)?[ {]`, 'm'));
    }
    expect(check(exposition)).toEqual({ status: 0, said: '' });
  });

  test('is strict: it reports invalid metrics', () => {
    const { status, said } = check('# HELP a_total A gauge.\n# TYPE a_total gauge\na_total 1\n');
    expect(status).not.toBe(0);
    expect(said).toContain('a_total');
  });
});
