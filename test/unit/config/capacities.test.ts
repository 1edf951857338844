import { expect, test } from 'vitest';
import { computeQuotaClientCapacity, computeQuotaCountCapacity } from '../../../src/config/compile/capacities.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';

const MIB = 1024 ** 2;

function configOf(perClient: string, upstreams = 'api: {url: "https://a"}'): Config {
  const text = `upstreams: {${upstreams}}
routes: [{upstream: api}]
state: {store: sqlite, file: state.db}
clients:
  auth: {apiKeys: {file: keys}}
  classes: {partners: {match: {key: ["*"]}, perClient: {${perClient}}}}`;
  const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

const TWO = 'api: {url: "https://a"}, other: {url: "https://b"}';

test.each([
  ['100 000 if a large heap has room', configOf('quota: 1/day'), 4096, 100_000],
  [
    'as many as a tenth of the heap has room for, with 1 KiB for a calendar quota',
    configOf('quota: 1/day'),
    100,
    10_240,
  ],
  ['half of that with two upstreams', configOf('quota: 1/day', TWO), 100, 5120],
  ['half of that with two quotas', configOf('quota: [1/day, 9/month]'), 100, 5120],
  ['a seventh of that with a rolling period', configOf('quota: 1/rolling 24h'), 100, 1462],
  ['100 000 without such quotas', configOf('maxRate: 1/s'), 1, 100_000],
])('the quotas of single clients are kept for %s', (_, config, heapMiB, expected) => {
  expect(computeQuotaClientCapacity(config, heapMiB * MIB)).toBe(expected);
});

test.each([
  ['one', configOf('quota: 1/day'), 10_240],
  ['one at each of two upstreams', configOf('quota: 1/day', TWO), 2 * 5120],
  ['two', configOf('quota: [1/day, 9/month]'), 2 * 5120],
  ['no', configOf('maxRate: 1/s'), 0],
])('there is room for each count of these clients when each has %s', (_, config, expected) => {
  expect(computeQuotaCountCapacity(config, 100 * MIB)).toBe(expected);
});
