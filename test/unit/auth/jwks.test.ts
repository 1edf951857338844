/** When the keys of an issuer are fetched, and for how long they are used. */
import type { CompactJWSHeaderParameters, FlattenedJWSInput } from 'jose';
import { describe, expect, test } from 'vitest';
import { JWKS_MAX_AGE, JWKS_REFRESH, RemoteJwks } from '../../../src/http/auth/jwks.ts';

const MINUTE = 60_000;
const TOKEN: FlattenedJWSInput = { payload: '', signature: '' };

function jwksOf(...ids: readonly string[]): string {
  // The public key of RFC 8037, appendix A.2.
  const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
  return JSON.stringify({ keys: ids.map((kid) => ({ kty: 'OKP', crv: 'Ed25519', x, kid })) });
}

function setUp(first: string) {
  const state = { now: 0, answer: first, fetches: 0, fails: false };
  const changes: (string | undefined)[] = [];
  const jwks = new RemoteJwks({
    clock: { now: () => state.now },
    fetch: () => {
      state.fetches += 1;
      return state.fails ? Promise.reject(new Error('refused')) : Promise.resolve(state.answer);
    },
    onFetch: (problem) => void changes.push(problem),
  });
  const find = async (kid: string): Promise<string> => {
    const header: CompactJWSHeaderParameters = { alg: 'EdDSA', kid };
    return Promise.resolve(jwks.getKey(header, TOKEN)).then(
      () => 'found',
      (error: unknown) => (error instanceof Error ? error.constructor.name : 'unknown'),
    );
  };
  return { state, changes, jwks, find };
}

describe('the keys of a URL', () => {
  test('are fetched once, however many tokens arrive', async () => {
    const { state, find } = setUp(jwksOf('a'));
    expect(await Promise.all([find('a'), find('a'), find('a')])).toEqual(['found', 'found', 'found']);
    expect(state.fetches).toBe(1);
  });

  test('are fetched again for an unknown key, once in half a minute', async () => {
    const { state, find, jwks } = setUp(jwksOf('a'));
    await find('a');
    const version = jwks.version();
    state.answer = jwksOf('b');
    state.now = MINUTE / 2 - 1;
    expect(await find('b')).toBe('JWKSNoMatchingKey');
    state.now = MINUTE / 2;
    expect(await find('b')).toBe('found');
    expect(await find('invented')).toBe('JWKSNoMatchingKey');
    expect(await find('a')).toBe('JWKSNoMatchingKey');
    expect(state.fetches).toBe(2);
    expect(jwks.version()).not.toBe(version);
  });

  test('are fetched in the background when they are old', async () => {
    const { state, find, jwks } = setUp(jwksOf('a'));
    await find('a');
    state.answer = jwksOf('b');
    state.now = JWKS_REFRESH;
    jwks.version();
    expect(state.fetches).toBe(1);
    state.now = JWKS_REFRESH + 1;
    expect(await find('a')).toBe('found');
    expect(state.fetches).toBe(2);
    expect(await find('a')).toBe('JWKSNoMatchingKey');
  });

  test('are used while fetches fail, but not for longer than their maximum age', async () => {
    const { state, find, jwks, changes } = setUp(jwksOf('a'));
    await find('a');
    state.fails = true;
    state.now = JWKS_MAX_AGE;
    expect(await find('a')).toBe('found');
    state.now = JWKS_MAX_AGE + 10_000;
    expect(jwks.version()).toBeUndefined();
    expect(await find('a')).toBe('JwksUnavailable');
    state.fails = false;
    state.now += 5000;
    expect(await find('a')).toBe('found');
    expect(changes).toEqual([undefined, 'refused', 'refused', undefined]);
  });

  test('are unavailable before the first fetch succeeds, which is tried every five seconds', async () => {
    const { state, find } = setUp(jwksOf('a'));
    state.fails = true;
    expect(await find('a')).toBe('JwksUnavailable');
    state.fails = false;
    state.now = 4999;
    expect(await find('a')).toBe('JwksUnavailable');
    expect(state.fetches).toBe(1);
    state.now = 5000;
    expect(await find('a')).toBe('found');
  });

  test('stay as they are if a response is not a JWKS', async () => {
    const { state, find, changes } = setUp(jwksOf('a'));
    await find('a');
    state.now = JWKS_REFRESH + 1;
    for (const answer of ['', '[]', '{"keys":[]}']) {
      state.answer = answer;
      state.now += 5000;
      expect(await find('a')).toBe('found');
    }
    await find('a');
    expect(new Set(changes.slice(1))).toEqual(
      new Set(['not JSON', 'not a JWKS: expected a list keys with at least one key']),
    );
  });
});
