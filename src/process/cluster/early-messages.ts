/** Hands on what comes, in order, beginning with what came before anybody followed. */
export class Backlog<T> {
  #follow: ((each: T) => void) | undefined;
  #early: T[] = [];

  readonly add = (each: T): void => {
    if (this.#follow === undefined) this.#early.push(each);
    else this.#follow(each);
  };

  /** From now on. */
  follow(follow: (each: T) => void): void {
    this.#follow = follow;
    const early = this.#early;
    this.#early = [];
    for (const each of early) follow(each);
  }
}
