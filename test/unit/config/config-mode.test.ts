/** The mode of the configuration, and of single upstreams. */
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { modeOfConfig, modeOfUpstream, observedUpstreams } from '../../../src/config/values/enforcement-mode.ts';

const UPSTREAMS =
  'upstreams: {a: {url: "http://a"}, b: {url: "http://b", mode: observe}, c: {url: "http://c", mode: enforce}}';

function configOf(yaml: string) {
  const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

test.each([
  ['', ['enforce', 'observe', 'enforce']],
  ['mode: enforce', ['enforce', 'observe', 'enforce']],
  ['mode: observe', ['observe', 'observe', 'enforce']],
])('the mode of an upstream is its own, or that of the configuration: %j', (mode, expected) => {
  const config = configOf(`${mode}\n${UPSTREAMS}\nroutes: [{upstream: a}]`);
  expect(['a', 'b', 'c'].map((name) => modeOfUpstream(config, name))).toEqual(expected);
  expect(observedUpstreams(config)).toEqual(['a', 'b', 'c'].filter((_, i) => expected[i] === 'observe'));
  expect(modeOfConfig(config)).toBe('enforce');
});

test('a configuration observes if all its upstreams are observed', () => {
  expect(modeOfConfig(configOf('upstreams: {a: {url: "http://a", mode: observe}}'))).toBe('observe');
  expect(modeOfConfig(configOf('mode: observe\nupstreams: {a: {url: "http://a"}}'))).toBe('observe');
});

test('rejects an unknown mode of an upstream', () => {
  const yaml = 'upstreams: {a: {url: "http://a", mode: watch}}';
  const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
  expect(loaded.kind === 'mistakes' && loaded.mistakes.map(({ path, message }) => `${path} ${message}`)).toEqual([
    'upstreams.a.mode expected one of enforce, observe',
  ]);
});
