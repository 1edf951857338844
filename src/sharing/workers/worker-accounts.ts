import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { HolderId } from './worker-account.ts';
import { Account } from './worker-account.ts';
import type { Demand } from './worker-protocol.ts';

/** The accounts of one limit, and whose turn it is: by weight, as clients are served in a queue (see `FairQueue`). */
export class Borrowers {
  readonly #accounts = new Map<HolderId, Account>();
  /** The tag of who was served last. */
  #virtual = 0;

  [Symbol.iterator](): IterableIterator<Account> {
    return this.#accounts.values();
  }

  get(holder: HolderId): Account | undefined {
    return this.#accounts.get(holder);
  }

  /** @param epoch what a new one is taken to know of */
  open(holder: HolderId, epoch: number, now: Millis): Account {
    let account = this.#accounts.get(holder);
    if (account === undefined) {
      account = new Account(holder, epoch, now);
      this.#accounts.set(holder, account);
    }
    return account;
  }

  close(holder: HolderId): void {
    this.#accounts.delete(holder);
  }

  /** Tokens wanted in all. */
  get want(): number {
    let want = 0;
    for (const account of this) want += account.want;
    return want;
  }

  /** Of who waits anywhere. */
  get activeWeight(): number {
    let weight = 0;
    for (const account of this) weight += account.activeWeight;
    return weight;
  }

  /** Of those who want a token, the one that is served next. */
  next(): Account | undefined {
    let next: Account | undefined;
    for (const account of this) {
      if (account.want > 0 && (next === undefined || account.tag < next.tag)) next = account;
    }
    return next;
  }

  /** It has had its turn. */
  serve(account: Account, slot: Millis): void {
    account.lend(slot);
    this.#virtual = Math.max(this.#virtual, account.tag);
    account.tag += 1 / account.weight;
  }

  note({ want, heard, weight, clients }: Demand, account: Account, now: Millis): void {
    const onTheirWay = account.granted - heard;
    const wasIdle = account.want === 0;
    account.want = Math.max(0, want - onTheirWay);
    if (weight > 0) {
      // What is left of its turn takes as much less as it has more weight: others wait there now.
      account.tag = this.#virtual + (Math.max(0, account.tag - this.#virtual) * account.weight) / weight;
      account.weight = weight;
    }
    if (wasIdle) account.tag = Math.max(account.tag, this.#virtual + 1 / account.weight);
    if (clients !== undefined) account.noteClients(clients, now);
  }
}
