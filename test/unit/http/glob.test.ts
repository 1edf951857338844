import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGlob } from '../../../src/http/request/glob.ts';

describe('a pattern', () => {
  test.each([
    ['high', 'high', true],
    ['high', 'highest', false],
    ['batch-*', 'batch-', true],
    ['batch-*', 'abatch-1', false],
    ['*-batch', 'x-batch', true],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*ab*ab*', 'xabyab', true],
    ['*ab*ab*', 'xab', false],
    ['ab*bc', 'abc', false],
    ['*', '', true],
    ['**', 'x\ny', true],
    ['a.c', 'abc', false],
    ['', '', true],
    ['', 'x', false],
  ])('matches or not: %s and %j: %s', (glob, text, matches) => {
    expect(compileGlob(glob)(text)).toBe(matches);
  });

  test('matches the same as the equivalent regular expression', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', '*'), { maxLength: 6 }).map((all) => all.join(''));
    const texts = fc.array(fc.constantFrom('a', 'b'), { maxLength: 8 }).map((all) => all.join(''));
    fc.assert(
      fc.property(letters, texts, (glob, text) => {
        const pattern = new RegExp(`^${glob.replaceAll('*', '.*')}$`, 's');
        expect(compileGlob(glob)(text)).toBe(pattern.test(text));
      }),
    );
  });

  test('takes no longer for an adversarial text', () => {
    const glob = compileGlob('*gold*gold*gold*vip*');
    const text = 'gold'.repeat(8000);
    const since = performance.now();
    for (let i = 0; i < 100; i += 1) expect(glob(text)).toBe(false);
    expect(performance.now() - since).toBeLessThan(2000); // backtracking would take hours
  });
});
