import { describe, expect, test } from 'vitest';
import { compileCors } from '../../../src/config/compile/compile-cors.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';

function load(cors: string, route = '') {
  const text = `upstreams: {api: {url: "https://a.example"}}\nroutes: [{upstream: api${route}, cors: ${cors}}]`;
  return loadConfig(text, 'f.yaml', { env: {}, readFile: String });
}

/** Mistakes without file, line and column. */
function mistakesOf(cors: string): string[] {
  const loaded = load(cors);
  const lines = loaded.kind === 'ok' ? [] : formatMistakes(loaded.mistakes).split('\n');
  return lines.map((line) => line.replace(/^f\.yaml:\d+:\d+ routes\[0\]\.cors/, ''));
}

describe('cross-origin settings', () => {
  test.each<[string, string[]]>([
    ['passthrough', [': expected pass-through, or a mapping with origins']],
    ['{origin: "*"}', ['.origins: expected a list, got text', '.origin: unknown key (did you mean origins?)']],
    ['{origins: []}', ['.origins: must not be empty']],
    [
      '{origins: [app.example.com]}',
      ['.origins[0]: an origin starts with a scheme (did you mean https://app.example.com?)'],
    ],
    [
      '{origins: ["https://App.example.com/"]}',
      ['.origins[0]: an origin has no path and no trailing / (did you mean https://app.example.com?)'],
    ],
    [
      '{origins: ["https://a.example:443"]}',
      ['.origins[0]: browsers leave out the default port of a scheme (did you mean https://a.example?)'],
    ],
    [
      '{origins: ["null"]}',
      ['.origins[0]: every sandboxed page and every local file sends the origin null: name an origin, or use *'],
    ],
    [
      '{origins: ["https://app.*.example"]}',
      [
        '.origins[0]: expected an origin such as https://app.example.com; * is allowed only as the first part of the host',
      ],
    ],
    [
      '{origins: ["*"], credentials: true}',
      ['.origins[0]: with credentials, browsers do not accept *: name the origins'],
    ],
    ['{origins: ["https://a.example", "*"]}', ['.origins[1]: * already allows every origin: remove it or the others']],
    [
      '{origins: ["https://a.example"], credentials: true, headers: ["*"], methods: ["*"], exposeHeaders: ["*"]}',
      [
        '.headers[0]: with credentials, browsers read * as a name: list them, or leave out the key to allow all that are requested',
        '.methods[0]: with credentials, browsers read * as a name: list them, or leave out the key to allow all that are requested',
        '.exposeHeaders[0]: with credentials, browsers read * as a name: list them',
      ],
    ],
    ['{origins: ["*"], methods: [get]}', ['.methods[0]: expected a method, or *']],
    ['{origins: ["*"], headers: ["a b"]}', ['.headers[0]: not a header name']],
    ['{origins: ["*"], maxAge: 5}', ['.maxAge: a duration needs a unit (did you mean 5ms or 5s?)']],
  ])('report a mistake with its path: %s', (cors, mistakes) => {
    expect(mistakesOf(cors).toSorted()).toEqual(mistakes.toSorted());
  });

  test('warn if the route does not accept a method', () => {
    const loaded = load('{origins: ["*"], methods: [GET, PUT]}', ', methods: [GET]');
    if (loaded.kind !== 'ok') throw new Error('not sound');
    expect(formatWarnings(loaded.warnings)).toContain(
      'routes[0].cors.methods[1]: has no effect: the route does not match this method',
    );
  });

  test('are printed as they are in effect', () => {
    const loaded = load('{origins: ["https://A.example:8443"]}');
    if (loaded.kind !== 'ok') throw new Error('not sound');
    const shown = formatEffectiveConfig(loaded.config, loaded.substituted);
    expect(shown).toContain('https://a.example:8443');
    expect(shown).toContain('maxAge: 10m');
  });
});

describe('compiled CORS settings', () => {
  const rules = { origins: ['*'], exposeHeaders: [], credentials: false, maxAge: 600_000 };

  test('are absent if CORS is left to the upstream', () => {
    expect(compileCors(undefined, undefined)).toBeUndefined();
    expect(compileCors('pass-through', undefined)).toBeUndefined();
  });

  test('take the methods of the route unless they name some', () => {
    expect(compileCors(rules, undefined)?.methods).toBeUndefined();
    expect(compileCors(rules, ['GET', 'PUT'])?.methods).toBe('GET, PUT');
    expect(compileCors({ ...rules, methods: ['GET'] }, ['GET', 'PUT'])?.methods).toBe('GET');
  });

  test('expose the headers of Tidegate too, each once', () => {
    expect(compileCors({ ...rules, exposeHeaders: ['X-A', 'Retry-After'] }, undefined)?.exposed).toMatch(
      /^Retry-After, .*, X-A$/,
    );
    expect(compileCors({ ...rules, exposeHeaders: ['*'] }, undefined)?.exposed).toBe('*');
  });
});
