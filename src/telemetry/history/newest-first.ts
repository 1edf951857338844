/** An item with a consecutive number. */
export interface Numbered {
  readonly number: number;
}

/** Merges two iterables, each newest first, into one. */
export function* mergeNewestFirst<T extends Numbered>(a: Iterable<T>, b: Iterable<T>): IterableIterator<T> {
  const [ofA, ofB] = [a[Symbol.iterator](), b[Symbol.iterator]()];
  let [nextA, nextB] = [ofA.next(), ofB.next()];
  while (nextA.done !== true || nextB.done !== true) {
    if (nextA.done !== true && (nextB.done === true || nextA.value.number > nextB.value.number)) {
      yield nextA.value;
      nextA = ofA.next();
    } else if (nextB.done !== true) {
      yield nextB.value;
      nextB = ofB.next();
    }
  }
}
