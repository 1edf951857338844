import type { AccountSharing } from '../core/accounts/account-notice.ts';
import type { MemoryStoreOptions } from './memory-store-options.ts';

/** How the accounts of an upstream are shared with other processes; undefined if they are not. */
export function shareAccounts(
  { sharingHooks, hash, random, listen }: Pick<MemoryStoreOptions, 'sharingHooks' | 'hash' | 'random' | 'listen'>,
  upstream: string,
): AccountSharing | undefined {
  if (sharingHooks?.onAccountChanged === undefined || hash === undefined) return undefined;
  return {
    ...{ hash, random },
    onChanged: (notice) => sharingHooks.onAccountChanged?.({ upstream, ...notice }),
    onReturned: (account, after) => listen({ type: 'account-returned', upstream, account, after }),
  };
}
