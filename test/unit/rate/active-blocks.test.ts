/** The blocks of one limit: which of them holds back a request, and which stay in force. */
import { describe, expect, test } from 'vitest';
import type { ActiveBlock } from '../../../src/core/rate/breaker/active-block.ts';
import { ActiveBlocks } from '../../../src/core/rate/breaker/active-blocks.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import { activeBlock } from '../../support/core/rate-builders.ts';

/** Of an address, and of a path of one segment. */
const of = (address: number, path = 0): RequestAttributes => [address, 0, 0, path, 0, 0, 0, path];

/** A partial block that began at 1000, unless the changes say otherwise. */
function blockOf(scope: RequestAttributes, changes: Partial<ActiveBlock> = {}): ActiveBlock {
  return activeBlock({ scope: [...scope], isPartial: true, ...changes });
}

function blocksOf(...added: readonly ActiveBlock[]): ActiveBlocks {
  const blocks = new ActiveBlocks();
  for (const block of added) blocks.add(block);
  return blocks;
}

/** Which of these addresses are held back by a block of theirs. */
const heldOf = (blocks: ActiveBlocks, ...addresses: readonly number[]): number[] =>
  addresses.filter((address) => blocks.find(of(address))?.scope[0] === address);

describe('the block of a request', () => {
  test('is that of its part, and without attributes the one that began last', () => {
    const [first, last] = [blockOf(of(1)), blockOf(of(2))];
    const blocks = blocksOf(first, last);
    expect([of(1), of(2), of(3), undefined].map((each) => blocks.findOrLatest(each))).toEqual([
      ...[first, last, undefined, last],
    ]);
    expect(blocks.find(undefined)).toBeUndefined();
  });
});

describe('a new block', () => {
  test.each<[string, ActiveBlock, ActiveBlock, number[]]>([
    ['stays beside that of another part', blockOf(of(1)), blockOf(of(2)), [1, 2]],
    ['replaces that of its own part', blockOf(of(2)), blockOf(of(2), { since: 2000 }), [2]],
    ['replaces those of narrower parts', blockOf(of(1, 7)), blockOf(of(1)), [1]],
    ['replaces one that nothing has passed', blockOf(of(1), { isPartial: false }), blockOf(of(2)), [2]],
  ])('%s', (_, earlier, later, held) => {
    const blocks = blocksOf(earlier, later);
    expect([heldOf(blocks, 1, 2), blocks.latest]).toEqual([held, later]);
    expect(blocks.find(of(1, 7)) === earlier).toBe(held.length === 2);
  });

  test('of all requests replaces all others', () => {
    const blocks = blocksOf(blockOf(of(1)), blockOf(of(2)), blockOf(ANY_REQUEST, { isPartial: false }));
    expect(heldOf(blocks, 1, 2)).toEqual([]);
  });

  test('is one of 32 at most: the oldest one ends', () => {
    const addresses = Array.from({ length: 34 }, (_, i) => i + 1);
    const blocks = blocksOf(...addresses.slice(0, 32).map((address) => blockOf(of(address))));
    expect(heldOf(blocks, ...addresses)).toEqual(addresses.slice(0, 32));
    for (const address of [33, 34]) blocks.add(blockOf(of(address)));
    expect(heldOf(blocks, ...addresses)).toEqual(addresses.slice(2));
  });
});

test('an accepted request ends all blocks that hold it back, and no other', () => {
  const [ofAddress, ofPath, other] = [blockOf(of(1)), blockOf(of(0, 7)), blockOf(of(2))];
  const blocks = blocksOf(ofAddress, ofPath, other);
  expect(blocks.removeProven(2000, of(3))).toBeUndefined();
  expect(blocks.removeProven(2000, of(1, 7))).toBe(ofPath);
  expect([of(1), of(9, 7), of(2)].map((each) => blocks.find(each))).toEqual([undefined, undefined, other]);
});

test('a block ends once no request has used it for five minutes, and the others stay', () => {
  const blocks = blocksOf(blockOf(of(1)), blockOf(of(2), { probeAt: 2000 }), blockOf(of(3)));
  blocks.removeUnused(301_000);
  expect(heldOf(blocks, 1, 2, 3)).toEqual([1, 2, 3]);
  blocks.removeUnused(301_001);
  expect(heldOf(blocks, 1, 2, 3)).toEqual([2]);
});
