import { distance } from 'fastest-levenshtein';

/** The candidate most similar to `word`; undefined when none is close. Ignores case, `-` and `_`. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const plain = normalize(word);
  // Two letters in five may differ.
  let nearest = Math.max(1, Math.round(plain.length * 0.4)) + 1;
  let found: string | undefined;
  const swapped = new Set(swapNeighbours(plain));
  for (const candidate of candidates) {
    const other = normalize(candidate);
    const editDistance = swapped.has(other) ? 1 : distance(plain, other);
    if (editDistance < nearest && editDistance < plain.length) [nearest, found] = [editDistance, candidate];
  }
  return found ?? findByPrefix(plain, candidates) ?? findSynonym(plain, candidates);
}

/** The word with each two neighbours swapped: one mistake, although two letters differ. */
function swapNeighbours(plain: string): string[] {
  return Array.from({ length: Math.max(0, plain.length - 1) }, (_, i) => {
    return `${plain.slice(0, i)}${plain.charAt(i + 1)}${plain.charAt(i)}${plain.slice(i + 2)}`;
  });
}

/** Names of backoff strategies in other libraries. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['constant', 'fixed'],
  ['const', 'fixed'],
  ['static', 'fixed'],
  ['uniform', 'random'],
  ['arithmetic', 'linear'],
  ['incremental', 'linear'],
  ['quadratic', 'polynomial'],
  ['power', 'polynomial'],
  ['geometric', 'exponential'],
  ['binary', 'ethernet'],
  ['binaryexponential', 'ethernet'],
  ['truncatedbinaryexponential', 'ethernet'],
  ['beb', 'ethernet'],
  ['jitter', 'full-jitter'],
  ['jittered', 'full-jitter'],
  ['aws', 'full-jitter'],
]);

function findSynonym(plain: string, candidates: Iterable<string>): string | undefined {
  const name = SYNONYMS.get(plain);
  return [...candidates].find((candidate) => candidate === name);
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
