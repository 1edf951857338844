import { expect, test } from 'vitest';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { NameSession } from '../../../src/core/idempotency/name-session.ts';
import { decodeNameState, encodeNameState } from '../../../src/sharing/redis/keys/name-state-codec.ts';

const NAME = { upstream: 'api', name: 'order' };
const clock = { now: () => 1000 };

function requestBy(credential: number): KeyClaimRequest {
  return {
    identity: {
      ...NAME,
      credential,
      owner: 1,
      credentialHeader: 'authorization',
      body: credential,
      keyOwner: credential,
      keyOwnerKind: 10,
    },
    place: { fairnessKey: 'a', client: 'a' },
    ...{ concurrent: 'wait', ttl: 60_000, endpoint: 'e1', onStoreLost: 'refuse', isNew: true },
  };
}

/** A write in progress, and one that is answered for two credentials, with a response on its way. */
function storedText(): string {
  const session = new NameSession('order', undefined, clock);
  session.claim('one/1', 'one', requestBy(1));
  session.change('one/1', (claim) => claim.release({ kind: 'answered', isFinal: true, isDelivered: true }));
  session.claim('one/2', 'one', { ...requestBy(1), concurrent: 'pass' });
  session.change('one/2', (claim) => claim.recordOutcome('may_have_taken_effect'));
  session.claim('two/1', 'two', requestBy(2));
  if (session.state === undefined) throw new Error('nothing is stored');
  return encodeNameState(session.state, 500);
}

type Path = readonly (string | number)[];

/** The paths of all values in it. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...entries.flatMap(([key, each]) => pathsIn(each, [...path, key]))];
}

/** @param replacement undefined: it is left out */
function changedAt(text: string, path: Path, replacement: unknown): string {
  const root = { root: JSON.parse(text) as unknown };
  const all = ['root', ...path];
  const parent = all.slice(0, -1).reduce<unknown>((value, key) => Reflect.get(value as object, key), root) as object;
  const last = all.at(-1) ?? '';
  if (replacement === undefined) Reflect.deleteProperty(parent, last);
  else Reflect.set(parent, last, replacement);
  return JSON.stringify(root.root) ?? '';
}

const OPTIONAL = /\.(body|keyOwner|keyOwnerKind|endpoint|ttl|isNew|isArriving|isFinal|record|last|firstSentAt)$/;

test('decodes what it encodes, with times on the local clock', () => {
  const text = storedText();
  const state = decodeNameState(text, NAME, 500);
  expect(state.writes.map(({ firstSentAt }) => firstSentAt)).toEqual([1000, 1000]);
  expect(state.claims.map(({ id }) => id)).toEqual(['one/1', 'one/2', 'two/1']);
  expect(state.writes.map(({ keyOwner, keyOwnerKind }) => [keyOwner, keyOwnerKind])).toEqual([
    [1, 10],
    [2, 10],
  ]);
  expect(encodeNameState(state, 500)).toBe(text);
});

test('rejects a state with a value that is missing, null or of another type', () => {
  const text = storedText();
  const accepted: string[] = [];
  for (const path of pathsIn(JSON.parse(text))) {
    for (const replacement of [undefined, null, {}, '?', -1e9, true]) {
      const changed = changedAt(text, path, replacement);
      const name = `.${path.join('.')}`;
      const type = typeof path.reduce<unknown>((value, key) => Reflect.get(value as object, key), JSON.parse(text));
      const isFree =
        type !== 'object' && type === typeof replacement && !/\.(state|concurrent|onStoreLost|last|write)$/.test(name);
      const isAbsent = replacement === undefined && OPTIONAL.test(name) && !/writes.*firstSentAt/.test(name);
      try {
        // It is decoded, and then used.
        const session = new NameSession('order', decodeNameState(changed, NAME, 500), clock);
        session.claim('two/2', 'two', requestBy(2));
        if (!isAbsent && !isFree) accepted.push(`${name}: ${JSON.stringify(replacement)}`);
      } catch (error) {
        if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
        expect(error.message).toMatch(/another form|JSON/);
      }
    }
  }
  expect(accepted).toEqual([]);
});

test.each([
  'not json',
  'null',
  '[]',
  '{"writes":[null],"claims":[]}',
  '{"writes":[{}],"claims":[]}',
  '{"writes":[],"claims":[{"id":"x","owner":"y","write":0}]}',
])('rejects %s', (text) => {
  expect(() => decodeNameState(text, NAME, 0)).toThrow(/another form|JSON/);
});
