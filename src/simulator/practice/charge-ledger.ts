import { remember } from './bounded-map.ts';

/** A charge as it is answered, in Stripe's words. Amounts are in the currency's smallest unit. */
export interface Charge {
  readonly id: string;
  readonly object: 'charge' | 'payment_intent';
  readonly amount: number | null;
  readonly currency: string | null;
  readonly status: 'succeeded';
  /** Seconds since 1970. */
  readonly created: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface ChargeRequest {
  readonly object: Charge['object'];
  readonly amount: number | null;
  readonly currency: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** What the customer meant to pay for, once: the client's own name for it. */
  readonly intent: string | undefined;
  readonly key: string | undefined;
  /** Tells whether two requests with one key are the same. */
  readonly fingerprint: string;
}

/** What becomes of a request to charge. */
export type Entry =
  /** Nobody has been charged before `commit`. */
  | { readonly kind: 'new'; commit(): Charge }
  | { readonly kind: 'replay'; readonly charge: Charge }
  /** The first request with this key is still at work. */
  | { readonly kind: 'busy' }
  /** The key belongs to a request with another body. */
  | { readonly kind: 'mismatch' };

/** Everything charged, as the account's owner would see it. */
export interface LedgerSummary {
  readonly charges: number;
  /** Charges beyond the first for the same intent. */
  readonly doubleCharges: number;
  readonly replays: number;
  readonly busy: number;
  readonly mismatches: number;
  /** The first hundred intents that were charged more than once, with the ids of their charges. */
  readonly doubled: Readonly<Record<string, readonly string[]>>;
  readonly latest: readonly Charge[];
}

/** Keys and intents it remembers; the oldest are forgotten first. */
const MEMORY = 100_000;
const DOUBLED_SHOWN = 100;
const LATEST_SHOWN = 20;

/** Charges, each key's once: the same key replays its charge. Without a key every request charges. */
export class Ledger {
  readonly #wallClock: () => number;
  readonly #byKey = new Map<string, { readonly fingerprint: string; charge: Charge | undefined }>();
  /** The first charge of each intent. */
  readonly #byIntent = new Map<string, string>();
  readonly #doubled = new Map<string, string[]>();
  readonly #latest: Charge[] = [];
  #charges = 0;
  #doubleCharges = 0;
  #replays = 0;
  #busy = 0;
  #mismatches = 0;

  /** @param wallClock milliseconds since 1970 */
  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  get charges(): number {
    return this.#charges;
  }

  get doubleCharges(): number {
    return this.#doubleCharges;
  }

  /** Whether this intent has been charged, as long as it is remembered. */
  isCharged(intent: string): boolean {
    return this.#byIntent.has(intent);
  }

  begin(request: ChargeRequest): Entry {
    const { key, fingerprint } = request;
    if (key === undefined) return { kind: 'new', commit: () => this.#charge(request) };
    const known = this.#byKey.get(key);
    if (known === undefined) {
      const entry: { fingerprint: string; charge: Charge | undefined } = { fingerprint, charge: undefined };
      remember(this.#byKey, key, entry, MEMORY);
      return { kind: 'new', commit: () => (entry.charge ??= this.#charge(request)) };
    }
    if (known.fingerprint !== fingerprint) {
      this.#mismatches += 1;
      return { kind: 'mismatch' };
    }
    if (known.charge === undefined) {
      this.#busy += 1;
      return { kind: 'busy' };
    }
    this.#replays += 1;
    return { kind: 'replay', charge: known.charge };
  }

  summary(): LedgerSummary {
    return {
      charges: this.#charges,
      doubleCharges: this.#doubleCharges,
      replays: this.#replays,
      busy: this.#busy,
      mismatches: this.#mismatches,
      doubled: Object.fromEntries([...this.#doubled].map(([intent, ids]) => [intent, [...ids]])),
      latest: this.#latest.toReversed(),
    };
  }

  #charge({ object, amount, currency, metadata, intent }: ChargeRequest): Charge {
    this.#charges += 1;
    const id = `${object === 'charge' ? 'ch' : 'pi'}_${String(this.#charges).padStart(6, '0')}`;
    const created = Math.floor(this.#wallClock() / 1000);
    const charge: Charge = { id, object, amount, currency, status: 'succeeded', created, metadata };
    this.#latest.push(charge);
    if (this.#latest.length > LATEST_SHOWN) this.#latest.shift();
    if (intent !== undefined) this.#note(intent, id);
    return charge;
  }

  #note(intent: string, id: string): void {
    const first = this.#byIntent.get(intent);
    if (first === undefined) return remember(this.#byIntent, intent, id, MEMORY);
    this.#doubleCharges += 1;
    const ids = this.#doubled.get(intent);
    if (ids !== undefined) ids.push(id);
    else if (this.#doubled.size < DOUBLED_SHOWN) this.#doubled.set(intent, [first, id]);
  }
}
