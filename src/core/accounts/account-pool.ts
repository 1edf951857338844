import type { AccountCredential } from './account-credential.ts';
import { Account, type QuarantineSettings } from './account.ts';

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

  constructor(settings: AccountPoolSettings) {
    this.#quarantine = settings.quarantine;
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
    this.#accounts = accounts.map(({ name, credential }) => {
      const known = this.find(name);
      if (known === undefined) return new Account(name, credential);
      known.rotate(credential);
      return known;
    });
  }

  /** An operator has unblocked the upstream: each account may be tried, whatever Retry-After this process has received with it. */
  endStops(): void {
    for (const account of this.#accounts) account.stoppedUntil = Number.NEGATIVE_INFINITY;
  }

  onChosen(account: Account): void {
    this.#uses += 1;
    account.lastUse = this.#uses;
  }
}
