import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { Millis } from '../../core/scalars.ts';
import type { StoreBinding } from './store-binding.ts';

/** Merges what another process knows of an account. Requests that wait with it may use another one from now on. */
export function applyAccountNotice(
  { store, onTokensSupplied }: StoreBinding,
  notice: AccountNotice,
  now: Millis,
): void {
  const { upstream, account } = notice;
  if (!store.has(upstream) || store.upstream(upstream).accounts?.applyNotice(notice, now) !== true) return;
  const limit = store.findLimit({ upstream, nested: '', scope: 'credential', key: account });
  if (limit !== undefined) onTokensSupplied(limit, now);
}
