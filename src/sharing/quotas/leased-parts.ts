/** The parts of a quota that a process has leased in the present part of its period, and what it has used of them. */
export class LeasedParts {
  /** Leased, less what was returned. */
  #ordinary = 0;
  /** The same, for requests with priority only. */
  #ofReserve = 0;
  /** Used for requests that are reserved or sent; more than was leased where requests are sent without a part. */
  #used = 0;
  #usedOfReserve = 0;
  /** For requests that are admitted and not sent yet. */
  #reserved = 0;
  #sentAfterEnd = 0;

  /** Parts that the next request may take; below 0 if requests were sent without one. */
  inHand(hasPriority: boolean): number {
    const ordinary = this.#ordinary - (this.#used - this.#usedOfReserve);
    return hasPriority ? ordinary + this.#ofReserve - this.#usedOfReserve : ordinary;
  }

  /** In hand, or taken for requests that are not sent yet. */
  get held(): number {
    return Math.max(0, this.inHand(true)) + this.#reserved;
  }

  get reserved(): number {
    return this.#reserved;
  }

  reserve(hasPriority: boolean): void {
    this.#take(hasPriority);
    this.#reserved += 1;
  }

  #take(mayUseReserve: boolean): void {
    if (mayUseReserve && this.inHand(false) <= 0 && this.inHand(true) > 0) this.#usedOfReserve += 1;
    this.#used += 1;
  }

  /** A part that is free again belongs to the reserve first: otherwise a request without priority would get it. */
  #free(): void {
    this.#used -= 1;
    if (this.#usedOfReserve > 0) this.#usedOfReserve -= 1;
  }

  release(): void {
    this.#free();
    this.#reserved -= 1;
  }

  /** @param isAfterEnd the part of the period is over, and the terms of the next one have not arrived: it will count in that */
  onSent(isAfterEnd: boolean): void {
    this.#take(true);
    if (isAfterEnd) this.#sentAfterEnd += 1;
  }

  giveBack(): void {
    this.#free();
  }

  grant(ordinary: number, ofReserve: number): void {
    this.#ordinary += ordinary;
    this.#ofReserve += ofReserve;
  }

  /** Returns how many requests were sent or reserved without a part. From now on they have one: the keeper counts them. */
  settleOverdrawn(): number {
    const overdrawn = Math.max(0, -this.inHand(false));
    this.#ordinary += overdrawn;
    return overdrawn;
  }

  /** Gives up all parts in hand, and returns their number. */
  takeUnused(): number {
    const ordinary = Math.max(0, this.inHand(false));
    const ofReserve = Math.max(0, this.#ofReserve - this.#usedOfReserve);
    this.#ordinary -= ordinary;
    this.#ofReserve -= ofReserve;
    return ordinary + ofReserve;
  }

  /** The part of the period is not over after all. */
  renew(): void {
    this.#sentAfterEnd = 0;
  }

  /** Another part of the period begins. Requests that are admitted and not sent yet will count in it. */
  begin(): void {
    this.#ordinary = 0;
    this.#ofReserve = 0;
    this.#usedOfReserve = 0;
    this.#used = this.#reserved + this.#sentAfterEnd;
    this.#sentAfterEnd = 0;
  }
}
