import { describe, expect, test } from 'vitest';
import { isLocalFailure, type ErrorReason } from '../../../src/core/exchange/attempt-outcome.ts';
import { isRepeatable, isSafe, type ReplaySafety } from '../../../src/core/exchange/request-facts.ts';

describe('a request', () => {
  test.each<
    [string, ReplaySafety | undefined, { safe: boolean; repeatable: boolean; repeatableWithSharedKey: boolean }]
  >([
    ['GET', undefined, { safe: true, repeatable: true, repeatableWithSharedKey: true }],
    ['PUT', undefined, { safe: false, repeatable: true, repeatableWithSharedKey: true }],
    ['DELETE', undefined, { safe: false, repeatable: true, repeatableWithSharedKey: true }],
    ['POST', undefined, { safe: false, repeatable: false, repeatableWithSharedKey: true }],
    ['PATCH', undefined, { safe: false, repeatable: false, repeatableWithSharedKey: true }],
    ['POST', 'safe', { safe: true, repeatable: true, repeatableWithSharedKey: true }],
    ['GET', 'never', { safe: true, repeatable: false, repeatableWithSharedKey: false }],
    ['PUT', 'never', { safe: false, repeatable: false, repeatableWithSharedKey: false }],
    ['POST', 'never', { safe: false, repeatable: false, repeatableWithSharedKey: false }],
  ])('%s, classified as %s, is safe or repeatable as listed', (method, replaySafety, expected) => {
    const facts = { method, replaySafety };
    expect({
      safe: isSafe(facts),
      repeatable: isRepeatable(facts, false),
      repeatableWithSharedKey: isRepeatable(facts, true),
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
