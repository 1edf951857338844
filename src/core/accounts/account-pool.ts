import type { Millis } from '../scalars.ts';
import type { AccountCredential } from './account-credential.ts';
import type { AccountNotice, AccountSharing } from './account-notice.ts';
import { Account } from './account.ts';
import type { QuarantineSettings } from './quarantine-settings.ts';

export interface AccountSettings {
  readonly name: string;
  readonly credential: AccountCredential;
}

export interface AccountPoolSettings {
  /** In the configured order; at least one. */
  readonly accounts: readonly AccountSettings[];
  readonly quarantine: QuarantineSettings;
}

/** The accounts of one upstream. A reload changes it in place, so a request that waits is sent with the new credential. */
export class AccountPool {
  #accounts: readonly Account[] = [];
  #quarantine: QuarantineSettings;
  #uses = 0;
  readonly #sharing: AccountSharing | undefined;

  /** @param sharing undefined if no other process uses the accounts */
  constructor(settings: AccountPoolSettings, sharing?: AccountSharing) {
    this.#quarantine = settings.quarantine;
    this.#sharing = sharing;
    this.reconfigure(settings);
  }

  get accounts(): readonly Account[] {
    return this.#accounts;
  }

  get quarantine(): QuarantineSettings {
    return this.#quarantine;
  }

  /** Undefined if no account has this name. */
  find(name: string): Account | undefined {
    return this.#accounts.find((account) => account.name === name);
  }

  /** Applies a new configuration. Accounts are identified by name. */
  reconfigure({ accounts, quarantine }: AccountPoolSettings): void {
    this.#quarantine = quarantine;
    const names = new Set(accounts.map(({ name }) => name));
    for (const account of this.#accounts) if (!names.has(account.name)) account.retireCredential();
    this.#accounts = accounts.map(({ name, credential }) => {
      const known = this.find(name);
      if (known === undefined) return this.#add(name, credential);
      known.rotate(credential);
      return known;
    });
  }

  /** An operator has unblocked the upstream: each account may be tried, whatever Retry-After this process has received with it. */
  endStops(): void {
    for (const account of this.#accounts) account.stoppedUntil = Number.NEGATIVE_INFINITY;
  }

  /** Merges what another process knows. Returns whether it is about the present credential of an account. */
  applyNotice({ account: name, credentialTag, ...shared }: AccountNotice, now: Millis): boolean {
    const account = this.find(name);
    const sharing = this.#sharing;
    if (account === undefined || sharing === undefined) return false;
    if (account.credential.tag(sharing.hash) !== credentialTag) return false;
    const { quarantinedSince: since = now } = account;
    const change = account.merge(shared, this.#quarantine, sharing.random(), now);
    if (change === 'returned') sharing.onReturned(name, now - since);
    return true;
  }

  #add(name: string, credential: AccountCredential): Account {
    const sharing = this.#sharing;
    if (sharing === undefined) return new Account(name, credential);
    const account: Account = new Account(name, credential, () => {
      const credentialTag = account.credential.tag(sharing.hash);
      sharing.onChanged({ account: name, credentialTag, ...account.shared(this.#quarantine) });
    });
    return account;
  }

  onChosen(account: Account): void {
    this.#uses += 1;
    account.lastUse = this.#uses;
  }
}
