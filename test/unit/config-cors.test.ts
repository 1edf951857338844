import { describe, expect, test } from 'vitest';
import { compileCors } from '../../src/config/compile/compile-cors.ts';
import { printEffective } from '../../src/config/load/effective-config.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../src/config/load/mistakes.ts';

function load(cors: string, route = '') {
  const text = `upstreams: {api: {url: "https://a.example"}}\nroutes: [{upstream: api${route}, cors: ${cors}}]`;
  return loadConfig(text, 'f.yaml', { env: {}, readFile: String });
}

/** Without file, line and column. */
function mistakesOf(cors: string): string[] {
  const loaded = load(cors);
  const lines = loaded.kind === 'ok' ? [] : formatMistakes(loaded.mistakes).split('\n');
  return lines.map((line) => line.replace(/^f\.yaml:\d+:\d+ routes\[0\]\.cors/, ''));
}

describe('what is written of other origins', () => {
  test.each<[string, string[]]>([
    ['passthrough', [': expected pass-through, or a mapping with origins']],
    ['{origin: "*"}', ['.origins: missing', '.origin: unknown key (did you mean origins?)']],
    ['{origins: []}', ['.origins: must not be empty']],
    ['{origins: [app.example.com]}', ['.origins[0]: an origin has a scheme (did you mean https://app.example.com?)']],
    [
      '{origins: ["https://App.example.com/"]}',
      ['.origins[0]: an origin has no path, and no / at its end (did you mean https://app.example.com?)'],
    ],
    [
      '{origins: ["https://a.example:443"]}',
      ['.origins[0]: browsers leave out the usual port of a scheme (did you mean https://a.example?)'],
    ],
    [
      '{origins: ["null"]}',
      ['.origins[0]: null is what every sandboxed page and every file says that it is: name an origin, or *'],
    ],
    [
      '{origins: ["https://app.*.example"]}',
      [
        '.origins[0]: expected an origin such as https://app.example.com; * stands for subdomains, at the beginning of the host',
      ],
    ],
    [
      '{origins: ["*"], credentials: true}',
      ['.origins[0]: with credentials, browsers do not take *: name the origins'],
    ],
    ['{origins: ["https://a.example", "*"]}', ['.origins[1]: * stands for all origins: leave out the others, or this']],
    [
      '{origins: ["https://a.example"], credentials: true, headers: ["*"], methods: ["*"], exposeHeaders: ["*"]}',
      [
        '.headers[0]: with credentials, browsers take * for a name: list them, or leave the key out for all that are asked for',
        '.methods[0]: with credentials, browsers take * for a name: list them, or leave the key out for all that are asked for',
        '.exposeHeaders[0]: with credentials, browsers take * for a name: list them',
      ],
    ],
    ['{origins: ["*"], methods: [get]}', ['.methods[0]: expected a method, or *']],
    ['{origins: ["*"], headers: ["a b"]}', ['.headers[0]: not a header name']],
    ['{origins: ["*"], maxAge: 5}', ['.maxAge: a duration needs a unit (did you mean 5ms or 5s?)']],
  ])('is told where it is wrong: %s', (cors, mistakes) => {
    expect(mistakesOf(cors).toSorted()).toEqual(mistakes.toSorted());
  });

  test('is warned of where the route does not take a method', () => {
    const loaded = load('{origins: ["*"], methods: [GET, PUT]}', ', methods: [GET]');
    if (loaded.kind !== 'ok') throw new Error('not sound');
    expect(formatWarnings(loaded.warnings)).toContain(
      'routes[0].cors.methods[1]: has no effect: the route does not take it',
    );
  });

  test('is shown as it is in effect', () => {
    const loaded = load('{origins: ["https://A.example:8443"]}');
    if (loaded.kind !== 'ok') throw new Error('not sound');
    const shown = printEffective(loaded.config, loaded.substituted);
    expect(shown).toContain('https://a.example:8443');
    expect(shown).toContain('maxAge: 10m');
  });
});

describe('compiled', () => {
  const rules = { origins: ['*'], exposeHeaders: [], credentials: false, maxAge: 600_000 };

  test('it is nothing where that is left to the upstream', () => {
    expect(compileCors(undefined, undefined)).toBeUndefined();
    expect(compileCors('pass-through', undefined)).toBeUndefined();
  });

  test('its methods are those of the route unless it names some', () => {
    expect(compileCors(rules, undefined)?.methods).toBeUndefined();
    expect(compileCors(rules, ['GET', 'PUT'])?.methods).toBe('GET, PUT');
    expect(compileCors({ ...rules, methods: ['GET'] }, ['GET', 'PUT'])?.methods).toBe('GET');
  });

  test('what is exposed has ours in it, each once', () => {
    expect(compileCors({ ...rules, exposeHeaders: ['X-A', 'Retry-After'] }, undefined)?.exposed).toMatch(
      /^Retry-After, .*, X-A$/,
    );
    expect(compileCors({ ...rules, exposeHeaders: ['*'] }, undefined)?.exposed).toBe('*');
  });
});
