import { expect, test } from 'vitest';
import { isJsonType, isPlainJsonType } from '../../../src/http/headers/media-type.ts';

test.each<[string, boolean, boolean]>([
  ['application/json', true, true],
  ['APPLICATION/JSON', true, true],
  ['application/json;charset=utf-8', true, true],
  ['application/json ; charset="UTF-8" ', true, true],
  ['application/json; charset=latin1', true, false],
  ['application/json; charset=utf-8; charset=utf-8', true, false],
  ['application/json;', true, false],
  ['application/json; profile=x', true, false],
  ['application/merge-patch+json', true, true],
  ['application/a+b+json', true, true],
  ['application/x-amz-json-1.0', true, true],
  ['application/x-amz-json-1.1', true, true],
  ['text/json; charset=utf-8', true, true],
  ['application/x-amz-json-1.2', true, true],
  ['text/x-json', true, true],
  ['application/json,application/json', true, false],
  ['application/+json', false, false],
  ['application/json-seq', false, false],
  ['application/jsonp', false, false],
  ['application/x-www-form-urlencoded', false, false],
  ['', false, false],
  [`application/${'a+'.repeat(100)}`, false, false],
])('%s: is JSON %s, in UTF-8 %s', (type, json, plain) => {
  expect([isJsonType(type), isPlainJsonType(type)]).toEqual([json, plain]);
});
