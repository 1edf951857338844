/** Who received the rejections of a credential. */
export interface RejectedRequester {
  /** The hashed identity of the client. */
  readonly client: string;
  /** Equal for clients that one sender may invent: those of one address, unless their names are proven. */
  readonly fairnessKey: string;
}

/** Clients whose rejections are counted at a time; beyond it, the counts of those rejected longest ago are lost. */
const MAX_CLIENTS = 1000;

/**
 * The rejections of a credential since a request with it was last accepted, by client. A client may provoke rejections by what it asks
 * for, so its own say something about the credential for this client only.
 */
export class RejectionSeries {
  /** The client rejected last is at the end. */
  readonly #byClient = new Map<string, number>();
  #fairnessKey: string | undefined;
  #count = 0;
  #isCommon = false;

  /** Rejections of all clients. */
  get count(): number {
    return this.#count;
  }

  /** Whether unrelated clients were rejected: their senders differ. */
  get isCommon(): boolean {
    return this.#isCommon;
  }

  /** Returns the rejections of this client. @param by how many this one counts for */
  add({ client, fairnessKey }: RejectedRequester, by: number): number {
    this.#fairnessKey ??= fairnessKey;
    this.#isCommon ||= fairnessKey !== this.#fairnessKey;
    this.#count += by;
    const count = this.countOf(client) + by;
    this.#byClient.delete(client);
    this.#byClient.set(client, count);
    if (this.#byClient.size > MAX_CLIENTS) this.#forgetOldest();
    return count;
  }

  countOf(client: string): number {
    return this.#byClient.get(client) ?? 0;
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#byClient.clear();
    this.#fairnessKey = undefined;
    this.#count = 0;
    this.#isCommon = false;
  }

  #forgetOldest(): void {
    for (const client of this.#byClient.keys()) {
      this.#byClient.delete(client);
      return;
    }
  }
}
