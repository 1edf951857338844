/** Beyond this many clients, those that do not wait and start no later than virtual time are dropped: they equal a new client. */
const MAX_CLIENTS = 1000;

interface WaitingClient {
  /** The virtual time at which its next turn begins. */
  start: number;
  /** The last round in which one of its requests took part. */
  round: number;
}

/**
 * Schedules several queues that wait for the tokens of one limit. Each queue knows its own next ticket; the one whose
 * client has received least by its weight goes first. A client that waits in many queues has one share, as have the clients of an
 * address. Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): a client's turn begins at virtual time once it waits, and
 * that does not change until it is served, or no longer waits.
 */
export class CrossQueueScheduler {
  readonly #clients = new Map<string, WaitingClient>();
  #virtualTime = 0;
  #round = 0;

  /** The next tickets of all queues are about to be compared. */
  beginRound(): void {
    this.#round += 1;
  }

  /** The virtual time at which the client's next request will have been served: the least goes first. @param weight > 0 */
  finishTag(client: string, weight: number): number {
    return this.#visit(client).start + 1 / weight;
  }

  /** @param cost in units */
  onServed(client: string, weight: number, cost = 1): void {
    const served = this.#visit(client);
    this.#virtualTime = Math.max(this.#virtualTime, served.start);
    served.start += cost / weight;
    if (this.#clients.size <= MAX_CLIENTS) return;
    for (const [each, { start, round }] of this.#clients) {
      if (start <= this.#virtualTime && !this.#isWaiting(round)) this.#clients.delete(each);
    }
  }

  /** A served request has cost more units than was known, or fewer. @param largest by which the next turn may come later in total */
  settle(client: string, weight: number, units: number, largest: number): void {
    const served = this.#clients.get(client);
    if (served === undefined) return;
    const start = served.start + units / weight;
    served.start = Math.max(
      this.#virtualTime,
      Math.min(start, Math.max(served.start, this.#virtualTime + largest / weight)),
    );
  }

  /** What earlier requests have cost delays no turn any more: the next turn of each client begins at virtual time. */
  forgiveCosts(): void {
    this.#clients.clear();
  }

  #visit(client: string): WaitingClient {
    const known = this.#clients.get(client);
    if (known === undefined) {
      const added = { start: this.#virtualTime, round: this.#round };
      this.#clients.set(client, added);
      return added;
    }
    if (!this.#isWaiting(known.round)) known.start = Math.max(known.start, this.#virtualTime);
    known.round = this.#round;
    return known;
  }

  /** Whether a client that took part in this round still waits: those that do take part in each. */
  #isWaiting(round: number): boolean {
    return round >= this.#round - 1;
  }
}
