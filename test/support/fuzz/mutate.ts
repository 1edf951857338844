/** Derives fuzzer input from sample texts by seeded random mutations. */
import type { Random } from '../../../src/core/scalars.ts';

export interface Mutator {
  /** Returns this text, or another sample, with one to four changes. */
  mutate(text: string): string;
  pick<T>(from: readonly T[]): T;
  /** Returns an integer below `bound`. */
  below(bound: number): number;
}

const NUMBERS = [
  ...['0', '-1', '+1', '00', '1e9', '0x10', '1.5', '.5', 'NaN', 'Infinity', '999999999999999999999', '2147483648'],
  ...['4294967296', '9007199254740992', '9007199254740993', '18446744073709551615', '18446744073709551616'],
];

/** @param words separators and keywords of the language to insert, one character a byte */
export function makeMutator(random: Random, texts: readonly string[], words: readonly string[]): Mutator {
  const below = (bound: number): number => Math.floor(random() * bound);
  const pick = <T>(from: readonly T[]): T => {
    const one = from[below(from.length)];
    if (one === undefined) throw new Error('nothing to pick from');
    return one;
  };
  const anyByte = (): string => String.fromCharCode(below(256));

  const changes: readonly ((text: string, at: number, end: number) => string)[] = [
    (text, at) => text.slice(0, at) + anyByte() + text.slice(at + 1),
    (text, at) => text.slice(0, at) + anyByte() + text.slice(at),
    (text, at) => text.slice(0, at) + pick(words) + text.slice(at),
    (text, at, end) => text.slice(0, at) + pick(words) + text.slice(end),
    (text, at, end) => text.slice(0, at) + text.slice(end),
    (text, at) => text.slice(0, at),
    (text, at, end) => text.slice(0, end) + text.slice(at, end).repeat(1 + below(6)) + text.slice(end),
    (text, at) => {
      const other = pick(texts);
      return text.slice(0, at) + other.slice(below(other.length));
    },
    (text, at) => {
      const number = /\d+/.exec(text.slice(at));
      if (number === null) return text + pick(words);
      const from = at + number.index;
      return text.slice(0, from) + pick(NUMBERS) + text.slice(from + number[0].length);
    },
    (text, at, end) => {
      const piece = text.slice(at, end);
      const swapped = piece === piece.toUpperCase() ? piece.toLowerCase() : piece.toUpperCase();
      return text.slice(0, at) + swapped + text.slice(end);
    },
  ];

  return {
    below,
    pick,
    mutate: (text) => {
      let changed = text;
      for (let left = 1 + below(4); left > 0; left -= 1) {
        const at = below(changed.length + 1);
        changed = pick(changes)(changed, at, Math.min(changed.length, at + 1 + below(24)));
      }
      return changed;
    },
  };
}
