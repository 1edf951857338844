/** Passes messages to a handler in order, and buffers those that arrive before there is one. */
export class EarlyMessages<T> {
  #handler: ((each: T) => void) | undefined;
  #buffered: T[] = [];

  readonly add = (each: T): void => {
    if (this.#handler === undefined) this.#buffered.push(each);
    else this.#handler(each);
  };

  /** Passes the buffered messages to the handler, and all later ones. */
  attach(handler: (each: T) => void): void {
    this.#handler = handler;
    const early = this.#buffered;
    this.#buffered = [];
    for (const each of early) handler(each);
  }
}
