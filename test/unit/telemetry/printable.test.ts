import { expect, test } from 'vitest';
import { printable, printableJson } from '../../../src/telemetry/format-values.ts';

/** Sets the title of a terminal, clears it, reorders text; the last one has two code units. */
const HOSTILE = '\x1b]0;owned\x07\u009b2J\u202eevil\r\n\u2028\u{e0001}';

test('replaces control and format characters', () => {
  expect(printable(HOSTILE)).toBe('�]0;owned��2J�evil����');
  expect(printable('süß – 1 €')).toBe('süß – 1 €');
});

test('escapes them in JSON, which stays the same value', () => {
  const json = printableJson({ id: HOSTILE, name: 'süß' });
  expect(json).toBe(printable(json));
  expect(json).toContain(String.raw`\u009b2J\u202eevil\r\n\u2028\udb40\udc01`);
  expect(JSON.parse(json)).toEqual({ id: HOSTILE, name: 'süß' });
});
