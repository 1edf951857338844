import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJsonField, readJsonScalar } from '../../src/core/http-semantics/json-field.ts';

const names = fc.constantFrom('a', 'b', 'key', 'k"e\\y', 'ü', '__proto__');
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', ',', ':', '\n', '\u2028', 'x') }),
    fc.integer(),
    fc.constantFrom(true, null, 1.5e-7),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc
    .uniqueArray(fc.tuple(names, tie('value')), { selector: ([name]) => name, maxLength: 5 })
    .map((members) => Object.fromEntries(members)),
}));

function follow(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}

test('reads the same value as JSON.parse from a valid document, with any spaces and escapes', () => {
  fc.assert(
    fc.property(
      values.object,
      fc.array(names, { minLength: 1, maxLength: 3 }),
      fc.constantFrom(undefined, 1, '\t'),
      fc.boolean(),
      (document, path, space, escape) => {
        const plain = JSON.stringify(document, undefined, space);
        const text = escape ? plain.replaceAll(/"(?:[^"\\]|\\.)*"/g, escapeLetters) : plain;
        const expected = follow(JSON.parse(text), path);
        const isText = typeof expected === 'string' && /^[^\0]+$/.test(expected) && expected.isWellFormed();
        expect(readJsonField(Buffer.from(text), path)).toBe(isText ? expected : undefined);
        const isScalar = ['string', 'number', 'boolean'].includes(typeof expected);
        expect(readJsonScalar(Buffer.from(text), path)).toBe(isScalar ? expected : undefined);
      },
    ),
    { numRuns: 2000 },
  );
});

test('reads no value from a damaged document that JSON.parse rejects', () => {
  fc.assert(
    fc.property(
      values.object,
      fc.nat(),
      fc.nat(255),
      fc.array(names, { minLength: 1, maxLength: 2 }),
      (doc, at, byte, path) => {
        const bytes = Buffer.from(JSON.stringify(doc));
        bytes[at % bytes.length] = byte;
        const read = readJsonField(bytes, path);
        if (read !== undefined) expect(follow(JSON.parse(bytes.toString()), path)).toBe(read);
      },
    ),
    { numRuns: 3000 },
  );
});

/** Escapes every letter of a JSON text as a number. */
function escapeLetters(text: string): string {
  return text.replaceAll(/\\u.{4}|\\.|[a-z]/g, (part) =>
    part.length > 1 ? part : `\\u${part.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
