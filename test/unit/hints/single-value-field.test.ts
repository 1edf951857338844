/** Fields that are defined to have a single value, and may have been joined by a proxy. */
import { expect, test } from 'vitest';
import { forEachValue } from '../../../src/core/hints/single-value-field.ts';

function valuesOf(field: string): string[] {
  const values: string[] = [];
  forEachValue(field, (value) => values.push(value));
  return values;
}

test.each<[string, string[]]>([
  ['40', ['40']],
  [' 40\t', ['40']],
  ['40,50', ['40', '50']],
  [' 40 ,\t50 , 60', ['40', '50', '60']],
  ['0;w=21600', ['0']],
  ['0 ; w=60;x, 1;y', ['0', '1']],
  [';w=60', ['']],
  ['', ['']],
  ['40,', ['40', '']],
  [' , 40,', ['', '40', '']],
  ['"40"', ['40']],
  [' "40" ;x, "50"', ['40', '50']],
  ['""', ['']],
  ['"40', ['"40']],
  ['40"', ['40"']],
  ['"40, 50"', ['"40', '50"']],
  ['Sat, 21 Nov 2026 11:26:45 GMT', ['Sat, 21 Nov 2026 11:26:45 GMT']],
  ['Sat,21 Nov 2026 11:26:45 GMT, 5', ['Sat,21 Nov 2026 11:26:45 GMT', '5']],
  ['Sat, \t21 Nov 2026 11:26:45 GMT,5', ['Sat, \t21 Nov 2026 11:26:45 GMT', '5']],
  ['Saturday, 21-Nov-26 11:26:45 GMT,7', ['Saturday, 21-Nov-26 11:26:45 GMT', '7']],
  // No date follows the comma.
  ['40, 1 Nov 2026', ['40', '1 Nov 2026']],
  ['40, 211 Nov 2026', ['40', '211 Nov 2026']],
  ['40, 2x Nov 2026', ['40', '2x Nov 2026']],
  ['40, x2 Nov 2026', ['40', 'x2 Nov 2026']],
  ['40, 21/Nov/2026', ['40', '21/Nov/2026']],
  ['40, 21 nov 2026', ['40', '21 nov 2026']],
  ['40, 21 NOV 2026', ['40', '21 NOV 2026']],
  ['40, 21 No 2026', ['40', '21 No 2026']],
  ['40, 21 Novem 2026', ['40', '21 Novem 2026']],
  ['40, 21 Nov, 2026', ['40', '21 Nov', '2026']],
  ['40, x 21 Nov 2026', ['40', 'x 21 Nov 2026']],
])('%j has the values %j', (field, values) => {
  expect(valuesOf(field)).toEqual(values);
});
