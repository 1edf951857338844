import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { resolveHashSecret } from '../../../src/process/client-hash-secret.ts';

function secretBy(text: string): string {
  const loaded = loadConfig(`upstreams: {api: {url: "http://a"}}\n${text}`, 'a.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return resolveHashSecret(loaded.config, undefined);
}

test('replicas of one store with a password derive the same client hash secret; other processes have random ones', () => {
  expect(secretBy('secret: 0123456789abcdef')).toBe('0123456789abcdef');
  expect(secretBy('')).not.toBe(secretBy(''));
  const one = secretBy('state: {store: redis, url: "redis://:pass@one:1"}');
  expect(secretBy('state: {store: redis, url: "redis://other", password: pass}')).toBe(one);
  expect(secretBy('state: {store: redis, url: "redis://:other@one:1"}')).not.toBe(one);
  expect(secretBy('state: {store: redis, url: "redis://:pass@one:1", prefix: mine}')).not.toBe(one);
  expect(one).toMatch(/^[0-9a-f]{64}$/);
});
