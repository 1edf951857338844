import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { Millis } from '../../core/scalars.ts';
import { nameCredential } from '../protocol/notice-outbox.ts';
import { HeldClients } from './held-clients.ts';
import type { LimitUpdates, UsageReport } from './worker-protocol.ts';

/** What one worker reports for all others, kept for those that join later: holds, and the last notice of each credential in quarantine. */
export class KeptUpdates {
  readonly heldClients = new HeldClients();
  readonly #notices = new Map<string, AccountNotice>();

  /** Returns what the other workers have to get; undefined if there is nothing. */
  add({ holds, accounts = [] }: Pick<UsageReport, 'holds' | 'accounts'>, now: Millis): LimitUpdates | undefined {
    if (holds.length > 0) this.heldClients.add(holds, now);
    for (const notice of accounts) {
      if (notice.quarantine === undefined) this.#notices.delete(nameCredential(notice));
      else this.#notices.set(nameCredential(notice), notice);
    }
    return makeUpdates({ holds, accounts });
  }

  /** What a worker gets that joins; undefined if there is nothing. */
  forJoin(now: Millis): LimitUpdates | undefined {
    const holds = this.heldClients.active(Number.POSITIVE_INFINITY, now);
    return makeUpdates({ holds, accounts: [...this.#notices.values()] });
  }

  /** What workers get after a reload, which may have added their accounts; undefined if there is nothing. */
  forReload(): LimitUpdates | undefined {
    return makeUpdates({ holds: [], accounts: [...this.#notices.values()] });
  }

  /** Drops the notices of other upstreams. */
  retain(isKnown: (upstream: string) => boolean): void {
    for (const [name, { upstream }] of this.#notices) if (!isKnown(upstream)) this.#notices.delete(name);
  }
}

function makeUpdates({ holds, accounts }: Required<Omit<LimitUpdates, 'limits'>>): LimitUpdates | undefined {
  if (accounts.length > 0) return { limits: [], holds, accounts };
  return holds.length > 0 ? { limits: [], holds } : undefined;
}
