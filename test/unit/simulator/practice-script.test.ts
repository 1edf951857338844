import { describe, expect, test } from 'vitest';
import { respondWith } from '../../../src/simulator/practice/response-plan.ts';
import { parseScript, ScriptError } from '../../../src/simulator/practice/response-script.ts';

const plain = { delay: 0, runsHandler: false };

describe('a practice script', () => {
  test('has one step for each attempt', () => {
    expect(parseScript('503,429 , 200')).toEqual([
      { ...plain, ending: respondWith(503) },
      { ...plain, ending: respondWith(429) },
      { delay: 0, runsHandler: true, ending: respondWith(200) },
    ]);
  });

  test('executes the write on a success, or before a failure if the script requires it', () => {
    const works = (text: string) => parseScript(text).map((step) => (step === 'pass' ? step : step.runsHandler));
    expect(works('201, 204, 302, 404, 500, reset, hang, delay=5, pass')).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
      true,
      'pass',
    ]);
    expect(works('500-after-charge, reset-after-charge, hang-after-charge')).toEqual([true, true, true]);
  });

  test('accepts modifiers in any order', () => {
    const step = {
      delay: 200,
      runsHandler: true,
      ending: { ...respondWith(201), fillerBytes: 300_000, cutAfterBytes: 100 },
    };
    expect(parseScript('delay=200; 201; body=300000; cut=100')).toEqual([step]);
    expect(parseScript('cut=100;body=300000;201;delay=200')).toEqual([step]);
    expect(parseScript('cut = 100')).toEqual([
      { delay: 0, runsHandler: true, ending: { ...respondWith(200), cutAfterBytes: 100 } },
    ]);
  });

  test('accepts headers verbatim, with commas and semicolons in quotes', () => {
    const [step] = parseScript(
      String.raw`429; retry-after=-1; header="X-Note:a, \"b\"; c"; header=Stripe-Rate-Limited-Reason:global-rate`,
    );
    expect(step).toEqual({
      ...plain,
      ending: respondWith(429, [
        'Retry-After',
        '-1',
        'X-Note',
        'a, "b"; c',
        'Stripe-Rate-Limited-Reason',
        'global-rate',
      ]),
    });
  });

  test.each([
    ['', 'step 1: an empty word'],
    ['503,,200', 'step 2: an empty word'],
    ['oops', 'step 1: unknown word "oops"'],
    ['200, 600', 'step 2: unknown word "600"'],
    ['100', 'step 1: unknown word "100"'],
    ['pass-after-charge', 'step 1: unknown word "pass-after-charge"'],
    ['503;reset', 'step 1: "reset" is a second ending'],
    ['pass;503', 'step 1: "503" is a second ending'],
    ['delay=5;pass', 'step 1: "pass" stands alone'],
    ['reset;body=5', 'step 1: "reset" has neither headers nor a body'],
    ['colour=red', 'step 1: unknown modifier "colour"'],
    ['delay=soon', 'step 1: delay: expected a whole number up to 600000, not "soon"'],
    ['body=1e9', 'step 1: body: expected a whole number up to 67108864, not "1e9"'],
    ['header=nonsense', 'step 1: header: expected NAME:VALUE, not "nonsense"'],
    ['header="bad name:x"', 'step 1: "bad name: x" is not a valid header'],
    ['429;retry-after="1', 'unterminated quote'],
  ])('reports the position of a mistake: %s', (text, message) => {
    expect(() => parseScript(text)).toThrow(new ScriptError(message));
  });
});
