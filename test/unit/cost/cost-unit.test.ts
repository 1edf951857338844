import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { costUnitOf } from '../../../src/config/schema/limits/cost-unit.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';

function unitOf(upstream: string, nested: string, rest = ''): string | undefined {
  const text = `upstreams: {api: {url: "https://a", ${upstream}}}\n${rest}`;
  const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error('is no valid configuration');
  return costUnitOf(loaded.config, 'api', nested);
}

describe('the unit of a limit', () => {
  test('is a request where no cost is configured', () => {
    expect(unitOf('rateLimit: {}', '')).toBeUndefined();
    expect(unitOf('limits: [{name: tokens, cost: 5}]', '')).toBeUndefined();
  });

  test('is another one for each cost, also that of a route', () => {
    const routes = 'routes: [{path: /, upstream: api}, {path: /heavy, upstream: api, cost: 25}]';
    const units = [
      unitOf('rateLimit: {cost: 5}', ''),
      unitOf('rateLimit: {cost: 6}', ''),
      unitOf('rateLimit: {}', '', routes),
      unitOf('limits: [{name: tokens, cost: 7}]', 'tokens'),
    ];
    expect(units.includes(undefined)).toBe(false);
    expect(new Set(units).size).toBe(4);
  });

  test('stays the same if routes are added, removed or reordered that name no other cost', () => {
    const units = [
      'routes: [{path: /, upstream: api, cost: 2}, {path: /heavy, upstream: api, cost: 25}]',
      'routes: [{path: /heavy, upstream: api, cost: 25}, {path: /, upstream: api, cost: 2}]',
      'routes: [{path: /, upstream: api, cost: 2}, {path: /new, upstream: api}, {path: /heavy, upstream: api, cost: 25}]',
      'routes: [{path: /, upstream: api, cost: 2}, {path: /a, upstream: api, cost: 25}, {path: /b, upstream: api, cost: 25}]',
    ].map((routes) => unitOf('rateLimit: {}', '', routes));
    expect(new Set(units).size).toBe(1);
    const added = 'routes: [{path: /, upstream: api}, {path: /new, upstream: api}]';
    expect(unitOf('rateLimit: {cost: 5}', '', added)).toBe(unitOf('rateLimit: {cost: 5}', ''));
  });
});

test('a limit drops what it has learned when a reload changes its unit, and only then', () => {
  const settings = { initialRate: undefined, maxRate: Infinity, minRate: 1, cooldown: 1000, unit: '5' };
  const meter = new LocalMeter(settings, () => 0.5);
  meter.resume(50, 60, 0);
  meter.advance(1000, false);
  expect(meter.rate(1000)).toBeLessThan(100);
  settings.unit = '7';
  meter.advance(1001, false);
  expect([meter.rate(1001), meter.phase, meter.meanCost]).toEqual([Infinity, 'open', 1]);
});
