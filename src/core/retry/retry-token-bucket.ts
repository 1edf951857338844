import { CounterMap } from '../collections/counter-map.ts';
import type { Millis } from '../scalars.ts';

export interface BudgetSettings {
  /** Retries earned by each success, ≥ 0. */
  readonly ratio: number;
  /** The capacity of the bucket, and its balance at the start, ≥ 0. */
  readonly burst: number;
}

/** Without any other client for so long, a client may use the whole budget. */
const ALONE_AFTER: Millis = 10_000;
const ONLY_CLIENT = '';
/** The most successes of which it is known whose they are. */
const MAX_EARNERS = 100;

/**
 * Limits retries to a share of successes: when an upstream fails as a whole, retrying everything would only multiply the
 * load. A token is spent when a retry is reserved, so retries that are still waiting are counted. (The token scheme of Finagle's
 * and linkerd's retry budgets, without their time window: `burst` bounds what an idle hour can save up.)
 *
 * Clients share it as queues share a buffer: a client beside others may have spent as much as is left, and no more, until
 * successes earn it back. So some is left for others, whatever one of them does (dynamic thresholds: Choudhury, Hahne, IEEE/ACM
 * Transactions on Networking 6, 1998, with α = 1). A client that has earned nothing lately, or has spent that, leaves the
 * lower half of the bucket to others that have: several clients that always fail would otherwise use up what these earn.
 */
export class RetryTokenBucket {
  #settings: BudgetSettings;
  #balance: number;
  /** Who spent the tokens that are not earned back, the oldest first. */
  readonly #spenders: string[] = [];
  readonly #spentBy = new Map<string, number>();
  /** Whose successes came last, as many as fill the bucket: a ring. */
  readonly #earners: string[] = [];
  #nextEarner = 0;
  readonly #successesOf = new CounterMap();
  /** Who used it last, and since when nobody else did. */
  #user: string | undefined;
  #userSince: Millis = Number.NEGATIVE_INFINITY;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#balance = settings.burst;
  }

  /** Changes the settings. The balance stays, up to the new burst. */
  adjust(settings: BudgetSettings): void {
    this.#settings = settings;
    this.#setBalance(this.#balance);
  }

  /** @param client or the address of clients that count as one; absent if there is only one */
  earn(client = ONLY_CLIENT, now: Millis = 0): void {
    this.#recordUser(client, now);
    this.#setBalance(this.#balance + this.#settings.ratio);
    this.#recordEarner(client);
  }

  /** @param client as in `earn` */
  spend(client = ONLY_CLIENT, now: Millis = 0): boolean {
    this.#recordUser(client, now);
    const spent = this.#spentBy.get(client) ?? 0;
    const isAlone = now - this.#userSince >= ALONE_AFTER;
    if (this.#balance < 1 || (spent >= Math.floor(this.#balance) && !isAlone)) return false;
    if (!isAlone && 2 * this.#balance < this.#settings.burst && this.#leavesHalf(client)) return false;
    this.#balance -= 1;
    this.#spenders.push(client);
    this.#spentBy.set(client, spent + 1);
    return true;
  }

  /** For a retry that was reserved and never sent. */
  refund(client = ONLY_CLIENT): void {
    const index = this.#spenders.lastIndexOf(client);
    if (index !== -1) this.#forgetSpender(index);
    this.#setBalance(this.#balance + 1);
  }

  /** Retries are configured, and the balance does not pay for one. */
  get isSpent(): boolean {
    return this.#settings.burst > 0 && this.#balance < 1;
  }

  /** The balance as a share of the burst, in [0, 1]. */
  get left(): number {
    return this.#settings.burst === 0 ? 0 : this.#balance / this.#settings.burst;
  }

  /** Whether this client leaves the lower half of the bucket to others, because these have earned retries lately and it has not. */
  #leavesHalf(client: string): boolean {
    if (this.#creditOf(client) > 0) return false;
    return this.#earners.some((other) => this.#creditOf(other) > 0);
  }

  /** What its last successes earned, without what it has spent; 0 or more. */
  #creditOf(client: string): number {
    const earned = this.#successesOf.count(client) * this.#settings.ratio;
    return Math.max(0, earned - (this.#spentBy.get(client) ?? 0));
  }

  #recordEarner(client: string): void {
    const { ratio, burst } = this.#settings;
    const size = Math.min(MAX_EARNERS, Math.ceil(burst / ratio) || 0);
    if (this.#nextEarner >= size) this.#nextEarner = 0;
    const before = this.#earners[this.#nextEarner];
    if (before !== undefined) this.#successesOf.decrement(before);
    this.#earners[this.#nextEarner] = client;
    this.#nextEarner += 1;
    this.#successesOf.increment(client);
  }

  #setBalance(balance: number): void {
    const { burst } = this.#settings;
    this.#balance = Math.min(burst, balance);
    while (this.#spenders.length > Math.ceil(burst - this.#balance)) this.#forgetSpender(0);
  }

  #forgetSpender(index: number): void {
    const [client = ''] = this.#spenders.splice(index, 1);
    const spent = (this.#spentBy.get(client) ?? 0) - 1;
    if (spent > 0) this.#spentBy.set(client, spent);
    else this.#spentBy.delete(client);
  }

  #recordUser(client: string, now: Millis): void {
    if (client === this.#user) return;
    // The first one is alone from the start.
    this.#userSince = this.#user === undefined ? Number.NEGATIVE_INFINITY : now;
    this.#user = client;
  }
}
