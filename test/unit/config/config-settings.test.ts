import { describe, expect, test } from 'vitest';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import type { ServeFlags } from '../../../src/config/load/serve-settings.ts';
import { resolveServeSettings } from '../../../src/config/load/serve-settings.ts';

const FILES: Readonly<Record<string, string>> = {
  'one.yaml': 'listen: 127.0.0.1:1\nlog: {level: warn}\nupstreams: {api: {url: https://one, timeout: 3s}}',
  'two.yaml': 'upstreams: {a: {url: https://a}, b: {url: https://b}}\nroutes: [{upstream: a}]',
  'none.yaml': 'drain: {delay: 1s}',
  'token.yaml': 'admin: {listen: 127.0.0.1:2, token: 0123456789abcdef}\nupstreams: {api: {url: https://one}}',
  'wrong.yaml': 'lissten: 1\nclients: 5\nupstreams: {api: {url: https://one}}',
};

type Env = Readonly<Record<string, string>>;

function resolve(flags: ServeFlags, env: Env = {}) {
  return resolveServeSettings(flags, {
    env,
    readFile: (path) => {
      const text = FILES[path];
      if (text === undefined) throw Object.assign(new Error(path), { code: path === 'folder' ? 'EISDIR' : 'ENOENT' });
      return text;
    },
  });
}

function configOf(flags: ServeFlags, env?: Env): Config {
  const settings = resolve(flags, env);
  if (settings.kind !== 'ok') throw new Error(JSON.stringify(settings));
  return settings.config;
}

function mistakesOf(flags: ServeFlags, env?: Env): string[] {
  const settings = resolve(flags, env);
  return settings.kind === 'mistakes' ? formatMistakes(settings.mistakes).split('\n') : [settings.kind];
}

test('rejects a configuration without an upstream', () => {
  expect(resolve({})).toEqual({ kind: 'nothing' });
  expect(resolve({ listen: '127.0.0.1:1' }, { TIDEGATE_CONFIG: '', TIDEGATE_UPSTREAM: '' })).toEqual({
    kind: 'nothing',
  });
});

describe('a --upstream flag alone', () => {
  test('is a complete configuration', () => {
    for (const config of [
      configOf({ upstream: 'https://api.example.com' }),
      configOf({}, { TIDEGATE_UPSTREAM: 'https://api.example.com' }),
    ]) {
      expect(Object.keys(config.upstreams)).toEqual(['default']);
      expect(config.upstreams['default']!.url).toBe('https://api.example.com');
      expect(config.routes).toEqual([{ path: '/', upstream: 'default' }]);
      expect(config.listen.address).toEqual({ kind: 'tcp', host: '127.0.0.1', port: 8080 });
    }
  });

  test('replaces the only upstream of the file, and keeps its settings', () => {
    const { upstreams } = configOf({ config: 'one.yaml', upstream: 'https://other' });
    expect(upstreams['api']).toMatchObject({ url: 'https://other', timeout: 3000 });
  });

  test('completes a file without an upstream', () => {
    const config = configOf({ config: 'none.yaml', upstream: 'https://other' });
    expect(config).toMatchObject({ drain: { delay: 1000 }, upstreams: { default: { url: 'https://other' } } });
  });

  test('is rejected if the file has several upstreams', () => {
    expect(mistakesOf({ config: 'two.yaml', upstream: 'https://other' })).toEqual([
      '--upstream: the file has 2 upstreams: change the url of one of them in the file',
    ]);
  });
});

describe('precedence', () => {
  test('is flag, variable, file, default', () => {
    const listen = (flags: ServeFlags, env: Env): unknown =>
      configOf({ config: 'one.yaml', ...flags }, env).listen.address;
    expect(listen({ listen: '127.0.0.1:3' }, { TIDEGATE_LISTEN: '127.0.0.1:2' })).toMatchObject({ port: 3 });
    expect(listen({}, { TIDEGATE_LISTEN: '127.0.0.1:2' })).toMatchObject({ port: 2 });
    expect(listen({ listen: '4' }, {}), 'a port alone').toEqual({ kind: 'tcp', host: '127.0.0.1', port: 4 });
    expect(listen({}, { TIDEGATE_LISTEN: '' })).toMatchObject({ port: 1 });
    expect(configOf({ config: 'two.yaml' }).listen.address).toMatchObject({ port: 8080 });
  });

  test('applies to the path of the file itself', () => {
    expect(resolve({ config: 'one.yaml' }, { TIDEGATE_CONFIG: 'two.yaml' })).toMatchObject({
      kind: 'ok',
      file: 'one.yaml',
    });
    expect(resolve({}, { TIDEGATE_CONFIG: 'two.yaml' })).toMatchObject({ kind: 'ok', file: 'two.yaml' });
    expect(resolve({ upstream: 'https://a' })).toMatchObject({ kind: 'ok', file: undefined });
  });

  test('applies to the admin port, whose token stays', () => {
    expect(configOf({ config: 'token.yaml' }, { TIDEGATE_ADMIN: '0.0.0.0:3' }).admin).toEqual({
      listen: { kind: 'tcp', host: '0.0.0.0', port: 3 },
      token: '0123456789abcdef',
    });
    expect(configOf({ config: 'token.yaml', admin: 'false' }, { TIDEGATE_ADMIN: '0.0.0.0:3' }).admin).toBe(false);
    expect(configOf({ config: 'one.yaml', admin: 'off' }).admin).toBe(false);
  });

  test('applies to client keys and the log level', () => {
    const config = configOf({ config: 'one.yaml', clientKey: 'header:X-Api-Key, ip', logLevel: 'debug' });
    expect(config.clients.key).toEqual([{ kind: 'header', name: 'X-Api-Key' }, { kind: 'ip' }]);
    expect(config.log.level).toBe('debug');
  });
});

describe('an error names', () => {
  test('the flag or variable that caused it', () => {
    expect(mistakesOf({ upstream: 'ollama:11434' })).toEqual([
      '--upstream: expected an http or https URL such as https://api.example.com (did you mean http://ollama:11434?)',
    ]);
    expect(mistakesOf({ upstream: 'http://unix:/run/a.sock:/' })).toEqual([
      '--upstream: a Unix socket is written unix:/path, with nothing after the path (did you mean unix:/run/a.sock?)',
    ]);
    expect(mistakesOf({ upstream: 'api.example.com' })).toEqual([
      '--upstream: expected an http or https URL such as https://api.example.com (did you mean https://api.example.com?)',
    ]);
    expect(mistakesOf({}, { TIDEGATE_UPSTREAM: 'https://a/v1' })).toEqual([
      'TIDEGATE_UPSTREAM: only an origin, without path, query or fragment (for a path, set rewritePrefix of the route) (did you mean https://a?)',
    ]);
    expect(mistakesOf({ config: 'one.yaml', listen: ':8080' }, { TIDEGATE_ADMIN: '0.0.0.0:9' })).toEqual([
      '--listen: expected host:port, [::]:port or unix:/path (did you mean 0.0.0.0:8080?)',
      'TIDEGATE_ADMIN: an address that other machines can reach needs a token: {listen, token}',
    ]);
    expect(mistakesOf({ config: 'one.yaml', clientKey: 'ip,,x', logLevel: 'loud', listen: '' })).toEqual([
      '--listen: expected host:port, [::]:port or unix:/path',
      '--log-level: expected one of trace, debug, info, warn, error, fatal, silent',
      '--client-key: expected header:NAME, bearer, ip or path:N',
    ]);
  });

  test('the file that cannot be read', () => {
    expect(mistakesOf({ config: 'absent.yaml' })).toEqual(['absent.yaml: cannot be read: no such file']);
    expect(mistakesOf({}, { TIDEGATE_CONFIG: 'folder' })).toEqual(['folder: cannot be read: it is a directory']);
  });

  test('the position in the file, also if a flag takes precedence', () => {
    expect(mistakesOf({ config: 'wrong.yaml', listen: ':1', clientKey: 'ip' })).toEqual([
      '--listen: expected host:port, [::]:port or unix:/path (did you mean 0.0.0.0:1?)',
      'wrong.yaml:1:1 lissten: unknown key (did you mean listen?)',
      'wrong.yaml:2:10 clients: expected a mapping, got a number',
    ]);
  });
});
