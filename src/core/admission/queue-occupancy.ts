import { Tally } from '../collections/counter-map.ts';

/** One address has at most so many times as many places as are left. */
const PLACES_TAKEN = 8;

/** Whose place it is, and of which client. */
export interface Place {
  /** An address, or a client that is told apart by it. */
  readonly holder: string;
  readonly client: string;
}

/**
 * Places to wait in, of which a ninth is kept from each address, so that no one takes all (dynamic thresholds, Choudhury and Hahne
 * 1998).
 */
export class Backlog {
  #size = 0;
  readonly #byHolder = new Tally();
  readonly #byClient = new Tally();
  /** Clients that wait, by address. */
  readonly #clients = new Tally();

  /** Places that are taken. */
  get size(): number {
    return this.#size;
  }

  /** Whether this one finds no place. @param most places that there are */
  isFull(holder: string, most: number): boolean {
    const left = most - this.#size;
    return left <= 0 || this.#byHolder.of(holder) >= PLACES_TAKEN * left;
  }

  /** Of an address: its clients that wait. */
  clientsOf(holder: string): number {
    return this.#clients.of(holder);
  }

  add({ holder, client }: Place): void {
    this.#size += 1;
    this.#byHolder.add(holder);
    if (this.#byClient.of(client) === 0) this.#clients.add(holder);
    this.#byClient.add(client);
  }

  remove({ holder, client }: Place): void {
    this.#size -= 1;
    this.#byHolder.remove(holder);
    this.#byClient.remove(client);
    if (this.#byClient.of(client) === 0) this.#clients.remove(holder);
  }
}
