import { distance } from 'fastest-levenshtein';

/** The candidate that `word` is most likely a slip of; undefined when none is near. Case, `-` and `_` make no difference. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = fold(word);
  // Two letters in five may be wrong, since two that changed places count as two: "chekc" finds check.
  let nearest = Math.max(1, Math.round(plain.length * 0.4)) + 1;
  let found: string | undefined;
  for (const candidate of candidates) {
    const apart = distance(plain, fold(candidate));
    if (apart < nearest && apart < plain.length) [nearest, found] = [apart, candidate];
  }
  return found ?? startOf(plain, candidates);
}

/** One is the start of the other: "warning" and warn, "conn" and connections. */
function startOf(plain: string, candidates: Iterable<string>): string | undefined {
  for (const candidate of candidates) {
    const other = fold(candidate);
    if (Math.min(other.length, plain.length) >= 3 && (other.startsWith(plain) || plain.startsWith(other))) {
      return candidate;
    }
  }
  return undefined;
}

function fold(word: string): string {
  // Longer than any name there is: the distance is quadratic.
  return word.slice(0, 100).toLowerCase().replace(/[-_]/g, '');
}
