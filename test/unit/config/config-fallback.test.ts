import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';

/** Mistakes or warnings, without file, line and column. */
function findings(fallbacks: Readonly<Record<string, string>>, more = ''): string[] {
  const upstreams = Object.entries(fallbacks).map(
    ([name, fallback]) => `${name}: {url: "http://${name}"${fallback === '' ? '' : `, fallback: ${fallback}`}}`,
  );
  const yaml = `upstreams: {${upstreams.join(', ')}}\nroutes: [{path: /, upstream: main}]\n${more}`;
  const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
  const text = loaded.kind === 'ok' ? formatWarnings(loaded.warnings) : formatMistakes(loaded.mistakes);
  return text.split('\n').flatMap((line) => /upstreams\.\S+ .*/.exec(line)?.[0] ?? []);
}

test('a fallback is the name of another upstream', () => {
  expect(findings({ main: 'backup', backup: '' })).toEqual([]);
  expect(findings({ main: 'backpu', backup: '' })).toEqual([
    'upstreams.main.fallback: no upstream has this name (did you mean backup?)',
  ]);
  expect(findings({ main: 'main' })).toEqual([
    'upstreams.main.fallback: an upstream cannot be its own fallback: name another one',
  ]);
});

test('fallbacks in a circle are rejected, a chain is not', () => {
  expect(findings({ main: 'b', b: 'c', c: '' })).toEqual([]);
  const circle = (name: string, next: string) =>
    `upstreams.${name}.fallback: fallbacks form a cycle: ${name} → ${next} → … → ${name}; remove one of them`;
  expect(findings({ main: 'b', b: 'main' })).toEqual([circle('main', 'b'), circle('b', 'main')]);
  expect(findings({ main: 'b', b: 'c', c: 'b' })).toEqual([circle('b', 'c'), circle('c', 'b')]);
});

test('a fallback in observe mode gets a warning', () => {
  expect(findings({ main: 'backup', backup: '' }, 'mode: observe')).toEqual([
    'upstreams.main.fallback: has no effect in observe mode, which refuses nothing',
  ]);
});

test('a fallback of an upstream in observe mode gets a warning, and that of an enforced one gets none', () => {
  const fallbacks = (mode: string, own: string) => {
    const yaml = `mode: ${mode}\nupstreams: {main: {url: "http://main", fallback: b, mode: ${own}}, b: {url: "http://b"}}\nroutes: [{upstream: main}]`;
    const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile: String });
    return loaded.kind === 'ok' ? loaded.warnings.map(({ path }) => path) : ['mistakes'];
  };
  expect(fallbacks('enforce', 'observe')).toEqual(['upstreams.main.fallback']);
  expect(fallbacks('observe', 'enforce')).toEqual([]);
});
