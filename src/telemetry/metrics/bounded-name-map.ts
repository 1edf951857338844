/** More than any configuration has routes: bounds memory if a name ever comes from elsewhere. */
const MAX_UNCONFIGURED = 1000;
const OVERFLOW_NAME = 'other';

/**
 * Values by name of a route or an upstream. An unknown name gets a value of its own when first seen, because a reload may add
 * names; after MAX_UNCONFIGURED of them, the rest share the value named `other`.
 */
export class BoundedNameMap<T> {
  readonly #byName = new Map<string, T>();
  readonly #create: (name: string) => T;
  readonly #maxSize: number;

  constructor(create: (name: string) => T, configured: Iterable<string>) {
    this.#create = create;
    const names = new Set(configured);
    this.#maxSize = names.size + MAX_UNCONFIGURED;
    for (const name of names) this.#getOrCreate(name);
  }

  get(name: string): T {
    return this.#byName.get(name) ?? this.#getOrCreate(name);
  }

  names(): Iterable<string> {
    return this.#byName.keys();
  }

  /** The concatenated results of `part` for each value. */
  flatMap<P>(part: (of: T) => Iterable<P>): P[] {
    return [...this.#byName.values()].flatMap((of) => [...part(of)]);
  }

  #getOrCreate(requested: string): T {
    const name = this.#byName.size < this.#maxSize ? requested : OVERFLOW_NAME;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const created = this.#create(name);
    this.#byName.set(name, created);
    return created;
  }
}
