import { describe, expect, test } from 'vitest';
import { isLocalFailure, type ErrorReason } from '../../../src/core/exchange/attempt-outcome.ts';
import { isRepeatable, isSafe, type ReplaySafety } from '../../../src/core/exchange/request-facts.ts';

describe('a request', () => {
  test.each<[string, ReplaySafety | undefined, { safe: boolean; repeatable: boolean; repeatableWithKey: boolean }]>([
    ['GET', undefined, { safe: true, repeatable: true, repeatableWithKey: true }],
    ['PUT', undefined, { safe: false, repeatable: true, repeatableWithKey: true }],
    ['DELETE', undefined, { safe: false, repeatable: true, repeatableWithKey: true }],
    ['POST', undefined, { safe: false, repeatable: false, repeatableWithKey: true }],
    ['PATCH', undefined, { safe: false, repeatable: false, repeatableWithKey: true }],
    ['POST', 'safe', { safe: true, repeatable: true, repeatableWithKey: true }],
    ['GET', 'never', { safe: true, repeatable: false, repeatableWithKey: false }],
    ['PUT', 'never', { safe: false, repeatable: false, repeatableWithKey: false }],
    ['POST', 'never', { safe: false, repeatable: false, repeatableWithKey: false }],
  ])('%s, classified as %s, is safe or repeatable as listed', (method, replaySafety, expected) => {
    const facts = { method, replaySafety };
    expect({
      safe: isSafe(facts),
      repeatable: isRepeatable(facts, false),
      repeatableWithKey: isRepeatable(facts, true),
    }).toEqual(expected);
  });
});

describe('a failed attempt', () => {
  test.each<[ErrorReason, boolean, boolean]>([
    ['aborted', true, true],
    ['aborted', false, true],
    ['too_many_files', true, true],
    ['too_many_files', false, true],
    ['timeout', false, true],
    ['timeout', true, false],
    ['connect', false, false],
    ['reset', false, false],
    ['reset', true, false],
  ])('%s, with the request sent: %s, is a local failure: %s', (reason, sent, isLocal) => {
    expect(isLocalFailure({ kind: 'error', reason, sent, took: 0 })).toBe(isLocal);
  });
});
