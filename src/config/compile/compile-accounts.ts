import { AccountCredential } from '../../core/accounts/account-credential.ts';
import type { AccountPoolSettings } from '../../core/accounts/account-pool.ts';
import type { TargetAccounts } from '../../http/request/route.ts';
import type { UpstreamConfig } from '../schema/config-schema.ts';
import { AccountQuarantineSchema } from '../schema/accounts/accounts-schema.ts';

/** Undefined if the upstream has no accounts. */
export function compileAccounts({
  accounts,
  accountQuarantine = AccountQuarantineSchema.parse({}),
}: Pick<UpstreamConfig, 'accounts' | 'accountQuarantine'>): AccountPoolSettings | undefined {
  if (accounts === undefined) return undefined;
  const { statuses, after, interval, maxInterval } = accountQuarantine;
  return {
    accounts: accounts.map(({ name, header, value }) => ({ name, credential: new AccountCredential(header, value) })),
    quarantine: { statuses: new Set(statuses), after, interval, maxInterval },
  };
}

/** Undefined if the upstream has no accounts. */
export function compileTargetAccounts({ accounts }: Pick<UpstreamConfig, 'accounts'>): TargetAccounts | undefined {
  return (
    accounts && {
      names: accounts.map(({ name }) => name),
      headers: new Set(accounts.map(({ header }) => header.toLowerCase().replaceAll('_', '-'))),
    }
  );
}
