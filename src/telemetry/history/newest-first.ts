/** What is counted. */
export interface Numbered {
  readonly number: number;
}

/** Two lists, each newest first, as one. */
export function* newestFirst<T extends Numbered>(a: Iterable<T>, b: Iterable<T>): IterableIterator<T> {
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
