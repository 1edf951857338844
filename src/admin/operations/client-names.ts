import { RecencyMap } from '../../core/collections/recency-map.ts';

/** Clients that are remembered by name. Further ones replace those that were named first. */
const MAX_CLIENTS = 10_000;

/** The configured names (`clients.names`) of clients whose requests have ended, by the hash of the client. */
export class ClientNames {
  readonly #names = new RecencyMap<string, string>();

  /** @param name undefined if the client has no name, or has lost it by a reload */
  record(client: string, name: string | undefined): void {
    const known = this.#names.get(client);
    if (name === known) return;
    this.#names.delete(client);
    if (name === undefined) return;
    this.#names.set(client, name);
    if (this.#names.size > MAX_CLIENTS) this.#names.deleteOldest();
  }

  of(client: string): string | undefined {
    return this.#names.get(client);
  }
}
