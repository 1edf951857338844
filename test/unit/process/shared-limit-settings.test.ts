/** The limits that a primary keeps, across reloads. */
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { SharedLimitSettings } from '../../../src/process/cluster/shared-limit-settings.ts';

function configOf(upstream: string): Config {
  const yaml = `upstreams: {up: {url: "http://127.0.0.1:1", ${upstream}}}`;
  const loaded = loadConfig(yaml, 'test.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

const NESTED: LimitRef = { upstream: 'up', nested: 'e', scope: 'upstream', key: '' };
const nested = (rate: string, more = ''): string => `limits: [{name: e, match: {path: /p}, maxRate: ${rate}${more}}]`;
const half = (): number => 0.5;

test('a removed limit has a meter until no request uses it, and is not configured', () => {
  const settings = new SharedLimitSettings(configOf(nested('5/s')), true);
  settings.reconfigure(configOf('timeout: 3s'));
  expect(settings.makeMeter(NESTED, half)?.rate(0)).toBe(5);
  expect([settings.isConfigured(NESTED), [...settings.nestedLimitScopes('up')]]).toEqual([false, []]);
  expect(settings.sharedRefs().map(({ nested: name }) => name)).toEqual(['']);
  settings.dropUnconfigured();
  expect(settings.makeMeter(NESTED, half)).toBeUndefined();
});

test('a limit that is removed and added again while requests use it has the new rate', () => {
  const settings = new SharedLimitSettings(configOf(nested('5/s')), true);
  const meter = settings.makeMeter(NESTED, half);
  settings.reconfigure(configOf('timeout: 3s'));
  settings.reconfigure(configOf(nested('50/s')));
  meter?.advance(1, false);
  expect(meter?.rate(1)).toBe(50);
  settings.dropUnconfigured();
  expect(settings.isConfigured(NESTED)).toBe(true);
});

test('a late report makes no meter of a former scope, or of a key that no limit has', () => {
  const settings = new SharedLimitSettings(configOf(nested('5/s')), true);
  const former: LimitRef = { ...NESTED, scope: 'client', key: 'a' };
  const keyed: LimitRef = { ...NESTED, key: 'k' };
  expect([former, keyed].map((ref) => settings.makeMeter(ref, half))).toEqual([undefined, undefined]);
  settings.reconfigure(configOf(nested('5/s', ', scope: client')));
  expect(settings.makeMeter(NESTED, half)).toBeDefined();
  settings.dropUnconfigured();
  expect(settings.makeMeter(NESTED, half)).toBeUndefined();
  expect(settings.makeMeter(former, half)).toBeDefined();
});
