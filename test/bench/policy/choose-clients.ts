import type { Random } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

export type Law = 'uniform' | 'Zipf';

/** Returns the client of each of `count` requests. */
export function chooseClients(law: Law, clients: number, count: number): Int32Array {
  const random = seededRandom(7);
  if (law === 'uniform') return Int32Array.from({ length: count }, () => Math.floor(random() * clients));
  // Frequent senders are spread among the others.
  const byRank = Int32Array.from({ length: clients }, (_, rank) => rank);
  shuffle(byRank, random);
  // The k-th most frequent sends about 1/k as often as the first: log((k + 1)/k) of log(clients + 1).
  return Int32Array.from({ length: count }, () => byRank[Math.floor((clients + 1) ** random()) - 1] ?? 0);
}

/** Shuffles uniformly (Fisher and Yates). */
export function shuffle<T>(items: { readonly length: number; [index: number]: T }, random: Random): void {
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [items[last], items[other]];
    if (a === undefined || b === undefined) continue;
    items[last] = b;
    items[other] = a;
  }
}
