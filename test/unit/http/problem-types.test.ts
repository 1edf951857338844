import { expect, test } from 'vitest';
import { asUnknownOutcome, overloadProblem } from '../../../src/http/response/problem-details.ts';

test('a refusal of a write that may have taken effect before has no type of another status', () => {
  const refusal = overloadProblem('replay_memory', () => 0);
  expect(refusal).toMatchObject({ status: 503, type: 'temporary-reduced-capacity' });
  const unknown = asUnknownOutcome(refusal, 'earlier_request');
  expect([unknown.status, unknown.type, unknown.reason]).toEqual([504, undefined, 'replay_memory']);
});
