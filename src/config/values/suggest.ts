import { distance } from 'fastest-levenshtein';

/** The candidate most similar to `word`; undefined when none is close. Ignores case, `-` and `_`. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = normalize(word);
  // Two letters in five may differ, because a transposition counts as two: "chekc" finds check.
  let nearest = Math.max(1, Math.round(plain.length * 0.4)) + 1;
  let found: string | undefined;
  for (const candidate of candidates) {
    const editDistance = distance(plain, normalize(candidate));
    if (editDistance < nearest && editDistance < plain.length) [nearest, found] = [editDistance, candidate];
  }
  return found ?? findByPrefix(plain, candidates);
}

/** Finds a candidate that starts with the word, or the reverse: "warning" and warn, "conn" and connections. */
function findByPrefix(plain: string, candidates: Iterable<string>): string | undefined {
  for (const candidate of candidates) {
    const other = normalize(candidate);
    if (Math.min(other.length, plain.length) >= 3 && (other.startsWith(plain) || plain.startsWith(other))) {
      return candidate;
    }
  }
  return undefined;
}

function normalize(word: string): string {
  // Longer than any known name, and bounded: the distance takes quadratic time.
  return word.slice(0, 100).toLowerCase().replace(/[-_]/g, '');
}
