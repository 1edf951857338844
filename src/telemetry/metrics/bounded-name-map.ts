/** More than any configuration has routes: a bound on memory, should a name ever come from somewhere else. */
const MAX_UNANNOUNCED = 1000;
const OVERFLOW = 'other';

/**
 * What is kept for each route or upstream. A name not announced gets its own at first sight, as a reload may bring new ones;
 * after a thousand of them, the rest share the one named `other`.
 */
export class ByName<T> {
  readonly #byName = new Map<string, T>();
  readonly #create: (name: string) => T;
  readonly #bound: number;

  constructor(create: (name: string) => T, announced: Iterable<string>) {
    this.#create = create;
    const names = new Set(announced);
    this.#bound = names.size + MAX_UNANNOUNCED;
    for (const name of names) this.#open(name);
  }

  get(name: string): T {
    return this.#byName.get(name) ?? this.#open(name);
  }

  names(): Iterable<string> {
    return this.#byName.keys();
  }

  /** What `part` yields of each, one after the other. */
  gather<P>(part: (of: T) => Iterable<P>): P[] {
    return [...this.#byName.values()].flatMap((of) => [...part(of)]);
  }

  #open(asked: string): T {
    const name = this.#byName.size < this.#bound ? asked : OVERFLOW;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const created = this.#create(name);
    this.#byName.set(name, created);
    return created;
  }
}
