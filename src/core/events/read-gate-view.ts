import type { AccountPool } from '../accounts/account-pool.ts';
import type { GateStore } from '../admission/gate-store.ts';
import type { Limit } from '../limits/limit.ts';
import type { QuotaView } from '../quota/calendar/calendar-quota.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { AccountView, GateView, LimitView } from './gate-views.ts';

/** @param advanced the limits of the store, advanced to `now` */
export function readGateView(store: GateStore, advanced: Iterable<Limit>, now: Millis): GateView {
  const limits: LimitView[] = [];
  for (const limit of advanced) limits.push(limit.view(now));
  const budgets = new Map<string, number>();
  const accounts: AccountView[] = [];
  const quotas: QuotaView[] = [];
  for (const { name: upstream, retryBudget, quotas: ofUpstream, classQuotas, accounts: pool } of store.upstreams()) {
    budgets.set(upstream, retryBudget.left);
    for (const each of [ofUpstream, classQuotas]) if (each !== undefined) quotas.push(...each.views(now));
    if (pool === undefined) continue;
    const rateOf = (account: string): PerSecond | undefined =>
      limits.find((each) => {
        return each.upstream === upstream && each.nested === '' && each.scope === 'credential' && each.key === account;
      })?.rate;
    accounts.push(...readAccountViews(upstream, pool, rateOf));
  }
  return {
    limits,
    clients: store.clients.view(now),
    budgets,
    ...(quotas.length === 0 ? {} : { quotas }),
    ...(accounts.length === 0 ? {} : { accounts }),
  };
}

/** @param rateOf the rate of the limit of an account; undefined if there is no limit yet */
export function readAccountViews(
  upstream: string,
  { accounts }: AccountPool,
  rateOf: (account: string) => PerSecond | undefined,
): AccountView[] {
  return accounts.map(({ name, isQuarantined, isCommonlyRejected, quarantinedSince: since, probeAt, inFlight }) => {
    const quarantine = since === undefined ? {} : { since, isCommonlyRejected, probeAt };
    const rate = rateOf(name) ?? Number.POSITIVE_INFINITY;
    return { upstream, account: name, isQuarantined, ...quarantine, inFlight, rate };
  });
}
