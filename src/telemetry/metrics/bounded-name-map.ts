/** More than any configuration has routes: bounds memory if a name ever comes from elsewhere. */
const MAX_UNCONFIGURED = 1000;
const OVERFLOW_NAME = 'other';

/**
 * Values by name of a route or an upstream. Each configured name has a value from the next scrape on, those that a reload
 * adds too. Any other name gets one when first seen; after `maxUnconfigured` of them, the rest share the value named `other`.
 */
export class BoundedNameMap<T> {
  readonly #byName = new Map<string, T>();
  readonly #create: (name: string) => T;
  readonly #configured: () => Iterable<string>;
  readonly #maxUnconfigured: number;
  #unconfigured = 0;

  /** @param configured called at each scrape */
  constructor(create: (name: string) => T, configured: () => Iterable<string>, maxUnconfigured = MAX_UNCONFIGURED) {
    this.#create = create;
    this.#configured = configured;
    this.#maxUnconfigured = maxUnconfigured;
    this.#addConfigured();
  }

  get(name: string): T {
    return this.#byName.get(name) ?? this.#createUnconfigured(name);
  }

  names(): Iterable<string> {
    this.#addConfigured();
    return this.#byName.keys();
  }

  /** The concatenated results of `part` for each value. */
  flatMap<P>(part: (of: T) => Iterable<P>): P[] {
    this.#addConfigured();
    return [...this.#byName.values()].flatMap((of) => [...part(of)]);
  }

  #addConfigured(): void {
    for (const name of this.#configured()) if (!this.#byName.has(name)) this.#add(name);
  }

  #createUnconfigured(requested: string): T {
    if (this.#unconfigured >= this.#maxUnconfigured) return this.#byName.get(OVERFLOW_NAME) ?? this.#add(OVERFLOW_NAME);
    this.#unconfigured += 1;
    return this.#add(requested);
  }

  #add(name: string): T {
    const created = this.#create(name);
    this.#byName.set(name, created);
    return created;
  }
}
