import type { GateStore } from '../admission/gate-store.ts';
import type { Limit } from '../limits/limit.ts';
import type { QuotaView } from '../quota/calendar/calendar-quota.ts';
import type { Millis } from '../scalars.ts';
import type { AccountView, GateView, LimitView } from './gate-views.ts';

/** @param advanced the limits of the store, advanced to `now` */
export function readGateView(store: GateStore, advanced: Iterable<Limit>, now: Millis): GateView {
  const limits: LimitView[] = [];
  for (const limit of advanced) limits.push(limit.view(now));
  const budgets = new Map<string, number>();
  const accounts: AccountView[] = [];
  const quotas: QuotaView[] = [];
  for (const { name: upstream, retryBudget, quotas: ofUpstream, accounts: pool } of store.upstreams()) {
    budgets.set(upstream, retryBudget.left);
    if (ofUpstream !== undefined) quotas.push(...ofUpstream.views(now));
    for (const { name, isQuarantined, probeAt, inFlight } of pool?.accounts ?? []) {
      const limit = limits.find(
        (each) => each.upstream === upstream && each.nested === '' && each.scope === 'credential' && each.key === name,
      );
      const probe = isQuarantined ? { probeAt } : {};
      accounts.push({ upstream, account: name, isQuarantined, ...probe, inFlight, rate: limit?.rate ?? Infinity });
    }
  }
  return {
    limits,
    clients: store.clients.view(now),
    budgets,
    ...(quotas.length === 0 ? {} : { quotas }),
    ...(accounts.length === 0 ? {} : { accounts }),
  };
}
