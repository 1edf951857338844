import type { Millis } from '../scalars.ts';

/** Who received the rejections of a credential. */
export interface RejectedRequester {
  /** The hashed identity of the client. */
  readonly client: string;
  /** Equal for clients that one sender may invent: those of one address, unless their names are proven. */
  readonly fairnessKey: string;
}

/** The rejections of one client, or of all. */
interface Rejections {
  readonly count: number;
  /** When the first of them was sent. */
  readonly firstSentAt: Millis;
}

const NONE: Rejections = { count: 0, firstSentAt: Number.POSITIVE_INFINITY };

/** Clients whose rejections are counted at a time; beyond it, the counts of those rejected longest ago are lost. */
const MAX_CLIENTS = 1000;

/**
 * The rejections of a credential since a request with it was last accepted, by client. A client may provoke rejections by what it asks
 * for, so its own say something about the credential for this client only.
 */
export class RejectionSeries {
  /** The client rejected last is at the end. */
  readonly #byClient = new Map<string, Rejections>();
  #all = NONE;
  #fairnessKey: string | undefined;
  #isCommon = false;

  /** Rejections of all clients. */
  get all(): Rejections {
    return this.#all;
  }

  /** Whether unrelated clients were rejected: their senders differ. */
  get isCommon(): boolean {
    return this.#isCommon;
  }

  /** Of the first rejected client; the empty string if there is none. */
  get fairnessKey(): string {
    return this.#fairnessKey ?? '';
  }

  /** Returns the rejections of this client. @param by how many this one counts for @param sentAt when its request was sent */
  add({ client, fairnessKey }: RejectedRequester, by: number, sentAt: Millis): Rejections {
    this.#fairnessKey ??= fairnessKey;
    this.#isCommon ||= fairnessKey !== this.#fairnessKey;
    this.#all = extend(this.#all, by, sentAt);
    const ofClient = extend(this.#byClient.get(client) ?? NONE, by, sentAt);
    this.#byClient.delete(client);
    this.#byClient.set(client, ofClient);
    if (this.#byClient.size > MAX_CLIENTS) this.#forgetOldest();
    return ofClient;
  }

  countOf(client: string): number {
    return (this.#byClient.get(client) ?? NONE).count;
  }

  /** The clients with at least this number of rejections, `max` at most: those rejected last. */
  clientsWith(count: number, max: number): readonly string[] {
    return [...this.#byClient].flatMap(([client, each]) => (each.count >= count ? [client] : [])).slice(-max);
  }

  /** Another process knows that unrelated clients were rejected. */
  markCommon(): void {
    this.#isCommon = true;
  }

  clear(): void {
    this.#byClient.clear();
    this.#fairnessKey = undefined;
    this.#all = NONE;
    this.#isCommon = false;
  }

  #forgetOldest(): void {
    for (const client of this.#byClient.keys()) {
      this.#byClient.delete(client);
      return;
    }
  }
}

function extend({ count, firstSentAt }: Rejections, by: number, sentAt: Millis): Rejections {
  return { count: count + by, firstSentAt: Math.min(firstSentAt, sentAt) };
}
