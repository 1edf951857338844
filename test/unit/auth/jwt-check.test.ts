/** What is remembered of verified tokens. */
import { createLocalJWKSet, exportJWK, generateKeyPair, type JWTVerifyGetKey, SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { JwtCheck } from '../../../src/http/auth/jwt-check.ts';

const NOW = 1_800_000_000_000;
const RULES = {
  issuer: 'i',
  audience: ['a'],
  algorithms: ['ES256'],
  header: 'Authorization',
  nameClaim: 'sub',
  clockTolerance: 30_000,
};

async function setUp(rules: Partial<typeof RULES> & { readonly namePrefix?: string } = {}) {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const state = { now: NOW, version: 1, keys: 0 };
  const getKey: JWTVerifyGetKey = () => {
    state.keys += 1;
    return Promise.resolve(jwk);
  };
  const check = new JwtCheck({ ...RULES, ...rules }, { getKey, version: () => state.version }, () => state.now);
  const issue = (claims: Record<string, unknown> = {}): Promise<string> =>
    new SignJWT({ sub: 'app', iss: 'i', aud: 'a', exp: NOW / 1000 + 60, ...claims })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(privateKey);
  return { check, state, issue };
}

test('verifies a token once, until it expires', async () => {
  const { check, state, issue } = await setUp();
  const token = await issue();
  const known = { kind: 'known', principal: { name: 'app', provenBy: 'jwt' } };
  expect(await check.verify(token)).toEqual(known);
  state.now = NOW + 90_000 - 1;
  expect(check.verify(token)).toEqual(known); // no promise
  expect(state.keys).toBe(1);
  state.now = NOW + 90_000;
  expect(await check.verify(token)).toEqual({ kind: 'rejected', why: 'expired' });
});

test('verifies a token again when the keys have changed', async () => {
  const { check, state, issue } = await setUp();
  const token = await issue();
  await check.verify(token);
  state.version = 2;
  await check.verify(token);
  expect(state.keys).toBe(2);
});

test('requires an expiry and a name', async () => {
  const { check, issue } = await setUp({ nameClaim: 'client' });
  expect(await check.verify(await issue({ exp: undefined, client: 'x' }))).toEqual({
    kind: 'rejected',
    why: 'malformed',
  });
  for (const client of [undefined, '', 7, 'a b', 'x'.repeat(129), '#x', 'é']) {
    expect(await check.verify(await issue({ client }))).toEqual({ kind: 'rejected', why: 'no_name' });
  }
});

test('puts the prefix before the name', async () => {
  const { check, issue } = await setUp({ namePrefix: 'k8s:' });
  expect(await check.verify(await issue({ sub: 'shop' }))).toMatchObject({ principal: { name: 'k8s:shop' } });
});

test('rejects what is too long, or has no three parts, without looking for a key', async () => {
  const { check, state } = await setUp();
  for (const token of ['', 'a.b', 'a.b.c.d', `a.b.${'c'.repeat(16_384)}`]) {
    expect(check.verify(token)).toEqual({ kind: 'rejected', why: 'malformed' });
  }
  expect(state.keys).toBe(0);
});

test('tries each key for a token without a key id, as an issuer publishes two while it replaces one', async () => {
  const pairs = [];
  for (let i = 0; i < 3; i += 1) pairs.push(await generateKeyPair('ES256', { extractable: true }));
  const published = await Promise.all(pairs.slice(0, 2).map(({ publicKey }) => exportJWK(publicKey)));
  const keys = published.map((jwk, i) => ({ ...jwk, kid: `key-${i}` }));
  const check = new JwtCheck(RULES, { getKey: createLocalJWKSet({ keys }), version: () => 1 }, () => NOW);
  const results = [];
  for (const { privateKey } of pairs) {
    const claims = { sub: 'app', iss: 'i', aud: 'a', exp: NOW / 1000 + 60 };
    results.push(await check.verify(await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(privateKey)));
  }
  const known = { kind: 'known', principal: { name: 'app', provenBy: 'jwt' } };
  expect(results).toEqual([known, known, { kind: 'rejected', why: 'bad_signature' }]);
  expect(check.bound.used).toBe(2 / 10_000); // remembered like others
});
