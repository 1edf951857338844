import type { Millis } from '../../scalars.ts';
import type { UpstreamQuota } from '../calendar/upstream-quota.ts';
import type { ClientQuotas, SpentClientQuota } from './client-quotas.ts';

/**
 * A client pays for a request once: `reserved` from its arrival until its first attempt is sent, `counted` until that has an outcome. If
 * nothing was sent, it is `unpaid` again; otherwise it is `paid`, and retries cost nothing.
 */
type ClientQuotaState =
  | { readonly kind: 'unpaid' }
  | { readonly kind: 'reserved'; readonly by: readonly UpstreamQuota[] }
  | { readonly kind: 'counted'; readonly by: readonly UpstreamQuota[]; readonly sentAt: Millis }
  | { readonly kind: 'paid' };

const UNPAID: ClientQuotaState = { kind: 'unpaid' };
const PAID: ClientQuotaState = { kind: 'paid' };

/** What one request uses of the quotas of its client. */
export class ClientQuotaUse {
  readonly #quotas: ClientQuotas;
  readonly #onEnd: (() => void) | undefined;
  #state = UNPAID;

  /** @param onEnd the request no longer uses the quotas */
  constructor(quotas: ClientQuotas, onEnd?: () => void) {
    this.#quotas = quotas;
    this.#onEnd = onEnd;
  }

  /** It needs a part of each quota, and has none. */
  get needsPart(): boolean {
    return this.#state.kind === 'unpaid';
  }

  /** See `ClientQuotas.findSpent`; undefined if the request needs no part. */
  findSpent(now: Millis): SpentClientQuota | undefined {
    return this.needsPart ? this.#quotas.findSpent(now) : undefined;
  }

  /** See `ClientQuotas.findAwaited`; undefined if the request needs no part. */
  findAwaited(now: Millis): UpstreamQuota | undefined {
    return this.needsPart ? this.#quotas.findAwaited(now) : undefined;
  }

  /** When the client may send its next request: 0 if it may now. */
  returnDelay(now: Millis): Millis {
    return this.#quotas.returnDelay(now);
  }

  /** Reserves a part of each quota, unless the request has paid. */
  reserve(now: Millis): void {
    if (this.needsPart) this.#state = { kind: 'reserved', by: this.#quotas.reserve(now) };
  }

  /** It will not be sent. */
  release(): void {
    if (this.#state.kind !== 'reserved') return;
    for (const quota of this.#state.by) quota.release();
    this.#state = UNPAID;
  }

  onSent(now: Millis): void {
    this.release();
    this.#state = this.needsPart ? { kind: 'counted', by: this.#quotas.onSent(now), sentAt: now } : PAID;
  }

  /** The attempt has an outcome. */
  settle(isUnsent: boolean): void {
    if (this.#state.kind !== 'counted') return;
    const { by, sentAt } = this.#state;
    if (isUnsent) this.#quotas.giveBack(by, sentAt);
    this.#state = isUnsent ? UNPAID : PAID;
  }

  /** The exchange is over. To be called once. */
  end(): void {
    this.release();
    this.#onEnd?.();
  }
}
