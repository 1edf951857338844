import { setBounded } from './bounded-map.ts';

/** A charge in the form of Stripe's API. Amounts are in the currency's smallest unit. */
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
  /** The client's name for one purchase, which must be charged once. */
  readonly intent: string | undefined;
  readonly key: string | undefined;
  /** Distinguishes requests that use the same key. */
  readonly fingerprint: string;
}

/** The result of beginning a charge. */
export type ChargeOutcome =
  /** Nothing is charged before `commit`. */
  | { readonly kind: 'new'; commit(): Charge }
  | { readonly kind: 'replay'; readonly charge: Charge }
  /** The first request with this key is in progress. */
  | { readonly kind: 'busy' }
  /** The key belongs to a request with another body. */
  | { readonly kind: 'mismatch' };

/** The totals of all charges. */
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

/** The most keys and intents kept; the oldest are removed first. */
const MAX_REMEMBERED = 100_000;
const MAX_DOUBLED_SHOWN = 100;
const MAX_LATEST_SHOWN = 20;

/** Records charges, one for each key: a repeated key returns its charge. Without a key every request charges. */
export class ChargeLedger {
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

  /** Whether this intent has been charged. False once the intent has been removed. */
  isCharged(intent: string): boolean {
    return this.#byIntent.has(intent);
  }

  begin(request: ChargeRequest): ChargeOutcome {
    const { key, fingerprint } = request;
    if (key === undefined) return { kind: 'new', commit: () => this.#charge(request) };
    const known = this.#byKey.get(key);
    if (known === undefined) {
      const entry: { fingerprint: string; charge: Charge | undefined } = { fingerprint, charge: undefined };
      setBounded(this.#byKey, key, entry, MAX_REMEMBERED);
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
    if (this.#latest.length > MAX_LATEST_SHOWN) this.#latest.shift();
    if (intent !== undefined) this.#recordIntent(intent, id);
    return charge;
  }

  #recordIntent(intent: string, id: string): void {
    const first = this.#byIntent.get(intent);
    if (first === undefined) return setBounded(this.#byIntent, intent, id, MAX_REMEMBERED);
    this.#doubleCharges += 1;
    const ids = this.#doubled.get(intent);
    if (ids !== undefined) ids.push(id);
    else if (this.#doubled.size < MAX_DOUBLED_SHOWN) this.#doubled.set(intent, [first, id]);
  }
}
