/** The mode of the configuration, and of single upstreams and routes. */
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import {
  isObservedUpstream,
  modeOfConfig,
  modeOfRoute,
  observedRoutes,
} from '../../../src/config/schema/enforcement-mode.ts';
import { routeName } from '../../../src/config/schema/route-name.ts';

function configOf(yaml: string) {
  const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

const UPSTREAMS = 'upstreams: {a: {url: "http://a"}, b: {url: "http://b", mode: observe}}\n';

test.each([
  ['that of the configuration', 'enforce', '{path: /, upstream: a}', 'enforce'],
  ['that of the configuration, if it observes', 'observe', '{path: /, upstream: a}', 'observe'],
  ['that of its upstream', 'enforce', '{path: /, upstream: b}', 'observe'],
  ['its own, beside an observing upstream', 'enforce', '{path: /, upstream: b, mode: enforce}', 'enforce'],
  ['its own, beside an enforcing upstream', 'enforce', '{path: /, upstream: a, mode: observe}', 'observe'],
  ['its own, beside an observing configuration', 'observe', '{path: /, upstream: a, mode: enforce}', 'enforce'],
])('the mode of a route is %s', (_, mode, route, expected) => {
  const config = configOf(`mode: ${mode}\n${UPSTREAMS}routes: [${route}]`);
  expect(config.routes.map((each) => modeOfRoute(config, each))).toEqual([expected]);
  expect(modeOfConfig(config)).toBe(expected);
});

test('a configuration with an enforced route enforces, and lists the routes that are observed', () => {
  const config = configOf(`${UPSTREAMS}routes: [{path: /, upstream: a}, {path: /b, upstream: b}]`);
  expect(modeOfConfig(config)).toBe('enforce');
  expect(observedRoutes(config).map(routeName)).toEqual(['/b']);
  expect(['a', 'b'].map((name) => isObservedUpstream(config, name))).toEqual([false, true]);
});

test('an upstream is not observed if one of its routes is enforced', () => {
  const config = configOf(`${UPSTREAMS}routes: [{path: /, upstream: b}, {path: /b, upstream: b, mode: enforce}]`);
  expect(isObservedUpstream(config, 'b')).toBe(false);
});

test('an upstream without a route of its own has the modes of the requests that fall back to it', () => {
  const withFallback = (mode: string, more: string) =>
    configOf(
      `mode: ${mode}\nupstreams: {a: {url: "http://a", fallback: b}, b: {url: "http://b"${more}}}\nroutes: [{path: /, upstream: a}]`,
    );
  expect(isObservedUpstream(withFallback('enforce', ''), 'b')).toBe(false);
  expect(isObservedUpstream(withFallback('enforce', ', mode: observe'), 'b')).toBe(true);
  expect(isObservedUpstream(withFallback('observe', ''), 'b')).toBe(true);
});

test.each([
  'upstreams: {a: {url: "http://a", mode: watch}}',
  'upstreams: {a: {url: "http://a"}}\nroutes: [{upstream: a, mode: watch}]',
])('rejects an unknown mode: %s', (yaml) => {
  const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
  expect(loaded.kind === 'mistakes' && loaded.mistakes.map(({ message }) => message)).toEqual([
    'expected one of enforce, observe',
  ]);
});
