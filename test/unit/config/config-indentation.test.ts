import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';

/** The mistakes, without the name of the file. */
function mistakesOf(text: string): string[] {
  const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile: () => '' });
  return loaded.kind === 'ok' ? [] : formatMistakes(loaded.mistakes).replaceAll('f.yaml:', '').split('\n');
}

describe('a setting at the wrong level is one mistake, and causes no further ones', () => {
  test.each([
    [
      'a url beside the name of its upstream',
      'upstreams:\n  api:\n  url: https://a\n',
      '3:3 upstreams.url: a setting of an upstream: indent it below api',
    ],
    [
      'a url in place of the name',
      'upstreams:\n  url: https://a\n',
      '2:3 upstreams.url: a setting of an upstream, which needs a name (did you mean api: {url: …}?)',
    ],
    [
      'several settings in place of the name',
      'upstreams:\n  url: https://a\n  timeout: 3s\n  retry: {attempts: 3}\n',
      '2:3 upstreams.url: url, timeout and retry are settings of an upstream, which needs a name (did you mean api: {url: …}?)',
    ],
    [
      'one setting too far left',
      'upstreams:\n  api:\n    url: https://a\n  timeout: 3s\nroutes: [{path: /, upstream: api}]\n',
      '4:3 upstreams.timeout: a setting of an upstream: indent it below api',
    ],
    [
      'a url at the top level',
      'url: https://a\n',
      '1:1 url: a setting of an upstream (did you mean upstreams: {api: {url: …}}?)',
    ],
    [
      'a setting of the only upstream at the top level',
      'upstreams: {pay: {url: https://a}}\nretry: {attempts: 3}\n',
      '2:1 retry: a setting of an upstream: indent it below upstreams.pay',
    ],
    [
      'an upstream at the top level',
      'upstreams:\napi:\n  url: https://a\n',
      '2:1 api: an upstream: indent it below upstreams',
    ],
    [
      'an upstream without upstreams',
      'listen: 127.0.0.1:8080\napi: {url: https://a}\n',
      '2:1 api: an upstream: indent it below upstreams',
    ],
    [
      'settings beside the empty key to which they belong',
      'upstreams:\n  api:\n    url: https://a\n    retry:\n    attempts: 3\n    maxRetryAfter: 3s\n',
      '5:5 upstreams.api.attempts: attempts and maxRetryAfter are keys of retry: indent them below retry',
    ],
    [
      'a setting of a route beside its empty key',
      'upstreams: {api: {url: https://a}}\nroutes:\n  - upstream: api\n    retry:\n    attempts: 3\n',
      '5:5 routes[0].attempts: a key of retry: indent it below retry',
    ],
    [
      'a section within another',
      'listen:\n  address: localhost:1\n  upstreams:\n    api: {url: https://a}\n',
      '3:3 listen.upstreams: a key of the top level: indent it as far as listen',
    ],
  ])('%s', (_, text, message) => {
    expect(mistakesOf(text)).toEqual([message]);
  });

  test('and the mistakes of the misplaced setting are reported too', () => {
    expect(mistakesOf('upstreams:\n  api:\n  url: https://a/v1\n  timeout: 3\n')).toEqual([
      '3:3 upstreams.url: url and timeout are settings of an upstream: indent them below api',
      expect.stringMatching(/^3:8 upstreams\.api\.url: only an origin/),
      expect.stringMatching(/^4:12 upstreams\.api\.timeout: a duration needs a unit/),
    ]);
  });

  test('and a value from a variable is not printed at the suggested place', () => {
    const read = (env: Record<string, string>): string[] => {
      const text = `upstreams:\n  api:\n  url: "$\{API_URL}"\n`;
      const loaded = loadConfig(text, 'f.yaml', { env, readFile: () => '' });
      return loaded.kind === 'ok' ? [] : formatMistakes(loaded.mistakes).split('\n');
    };
    const misplaced = 'f.yaml:3:3 upstreams.url: a setting of an upstream: indent it below api';
    expect(read({ API_URL: 'hush.example.com' })).toEqual([
      misplaced,
      'f.yaml:3:8 upstreams.api.url: expected an http or https URL such as https://api.example.com',
    ]);
    expect(read({})).toEqual([misplaced, 'f.yaml:3:9 upstreams.url: the variable API_URL is not set']);
  });

  test('and a misspelt key is reported, but not the correct one as missing', () => {
    expect(mistakesOf('upstream:\n  api: {urll: https://a/v1}\n')).toEqual([
      '1:1 upstream: unknown key (did you mean upstreams?)',
      '2:9 upstreams.api.urll: unknown key (did you mean url?)',
      expect.stringMatching(/^2:15 upstreams\.api\.url: only an origin/),
    ]);
  });

  test('but an upstream may have the name of a setting', () => {
    expect(mistakesOf('upstreams: {retry: {url: https://a}}')).toEqual([]);
  });
});

describe('a list in place of a mapping, or the reverse, is one mistake, apart from those of its values', () => {
  const noList = 'expected a mapping, got a list: write its keys without "- " or [ ]';
  const noMapping = 'expected a list, got a mapping: write "- " before its first key, or [ ] around it';
  test.each([
    ['an upstream', 'upstreams:\n  api:\n    - url: https://a\n', [`3:5 upstreams.api: ${noList}`]],
    [
      'an upstream with an item for each setting, and a setting within',
      'upstreams:\n  api:\n    - url: https://a\n      timeut: 3s\n    - retry: [{attempts: x}]\n',
      [
        `3:5 upstreams.api: ${noList}`,
        '4:7 upstreams.api.timeut: unknown key (did you mean timeout?)',
        `5:14 upstreams.api.retry: ${noList}`,
        '5:26 upstreams.api.retry.attempts: expected a number, got text',
      ],
    ],
    ['upstreams with names', 'upstreams:\n  - api: {url: https://a}\n', [`2:3 upstreams: ${noList}`]],
    [
      'settings at the top level',
      'upstreams: {api: {url: https://a}}\nlisten: [{address: 127.0.0.1:1}]\n',
      [`2:9 listen: ${noList}`],
    ],
    [
      'one route',
      'upstreams: {api: {url: https://a}}\nroutes:\n  path: /\n  upstream: apo\n',
      [`3:3 routes: ${noMapping}`, '4:13 routes[0].upstream: no upstream has this name (did you mean api?)'],
    ],
    [
      'one nested limit',
      'upstreams: {api: {url: https://a, limits: {name: x, mtch: {path: /a}}}}\n',
      [
        `1:43 upstreams.api.limits: ${noMapping}`,
        '1:53 upstreams.api.limits[0].mtch: unknown key (did you mean match?)',
      ],
    ],
    [
      'several upstreams of a list, which stay one mistake',
      'upstreams: [{name: a, url: https://a}, {name: b, url: https://b}]\n',
      ['1:12 upstreams: expected a mapping, got a list (did you mean {api: {url: …}}?)'],
    ],
    [
      'a mapping of urls',
      'upstreams: {api: {urls: {a: https://a}}}\n',
      ['1:25 upstreams.api.urls: expected a list, got a mapping'],
    ],
  ])('%s', (_, text, messages) => {
    expect(mistakesOf(text)).toEqual(messages);
  });

  test('and a value from a variable is not printed at its suggested place', () => {
    const loaded = loadConfig(`upstreams: {api: [{url: "$\{URL}"}]}`, 'f.yaml', {
      env: { URL: 'hush.example.com' },
      readFile: () => '',
    });
    expect(JSON.stringify(loaded)).toContain('upstreams.api.url');
    expect(JSON.stringify(loaded)).not.toContain('hush');
  });
});

describe('an upstream in a short form is rejected with its full form as suggestion', () => {
  test.each([
    ['upstreams: https://a', 'upstreams: expected a mapping, got text (did you mean {api: {url: https://a}}?)'],
    ['upstreams: {api: https://a}', 'upstreams.api: expected a mapping, got text (did you mean {url: https://a}?)'],
    ['upstreams: [{url: https://a}]', 'upstreams: expected a mapping, got a list (did you mean {api: {url: …}}?)'],
    ['upstreams: {api: [https://a]}', 'upstreams.api: expected a mapping, got a list (did you mean {url: …}?)'],
    ['upstreams: {api: [https://a, b]}', 'upstreams.api: expected a mapping, got a list (did you mean {urls: […]}?)'],
    ['upstreams: {api: "https://me:hush@a"}', 'upstreams.api: expected a mapping, got text'],
    [
      'upstreams:\n  api:\n    url:https://a',
      'upstreams.api: expected a mapping, got text (a space is missing after the colon)',
    ],
  ])('%s', (text, message) => {
    expect(mistakesOf(text).map((line) => line.replace(/^\S+ /, ''))).toEqual([message]);
  });

  test('but without a suggestion if it is from a variable', () => {
    const loaded = loadConfig(`upstreams: {api: "$\{URL}"}`, 'f.yaml', {
      env: { URL: 'https://a' },
      readFile: () => '',
    });
    expect(loaded).toMatchObject({ mistakes: [{ suggestion: undefined }] });
  });
});

describe('a line with a wrong indentation is reported, with the indentation of the lines above', () => {
  const WRONG = 'not YAML: the indentation of this line matches no line above it';
  test.each([
    [
      'upstreams:\n  api:\n      url: https://a\n     timeout: 3s\n',
      `4:6 ${WRONG} (did you mean 6 spaces, as in line 3?)`,
    ],
    [
      'upstreams:\n  api:\n    url: https://a\n   timeout: 3s\n',
      `4:4 ${WRONG} (did you mean 2 spaces, as in line 2, or 4 spaces, as in line 3?)`,
    ],
    [
      'upstreams:\n  api:\n    url: https://a\n      timeout: 3s\n',
      `4:7 ${WRONG} (did you mean 4 spaces, as in line 3?)`,
    ],
    ['listen: localhost:1\n  upstreams: {}\n', `2:3 ${WRONG} (did you mean no space, as in line 1?)`],
    ['routes:\n    - path: /\n     upstream: api\n', `3:6 ${WRONG} (did you mean 6 spaces, as in line 2?)`],
    ['log:\n level: info\n# note\n\n  buffer: 1MiB\n', `5:3 ${WRONG} (did you mean 1 space, as in line 2?)`],
  ])('%j', (text, message) => {
    expect(mistakesOf(text)).toEqual([message]);
  });

  test.each([
    ['a: b: c', 'not YAML: a second mapping or list on the line of the first: quote the text, or start a new line'],
    ['secret: {a\nupstreams: {}\n', 'not YAML: '],
  ])('but not if another mistake is the cause: %j', (text, message) => {
    const [first = ''] = mistakesOf(text);
    expect(first).toContain(message);
    expect(first).not.toContain('indentation');
  });
});

test('a duplicate key is reported with the position of the first', () => {
  expect(mistakesOf('upstreams:\n  api:\n    url: https://a\n    timeout: 3s\n    timeout: 4s\n')).toEqual([
    '5:5 upstreams.api.timeout: written twice: the first is at 4:5',
  ]);
});

test('a line with a wrong indentation is one mistake, however many errors it causes', () => {
  const text =
    'upstreams:\n  api:\n    url: http://a\n "   retry: {attempts: 3, retryOn: [5xx, "429"]}\n    timeout: 10«\n';
  const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile: () => '' });
  expect(loaded.kind === 'mistakes' ? loaded.mistakes.map(({ line }) => line) : []).toEqual([4]);
});
