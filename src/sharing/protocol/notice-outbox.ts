import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { Millis } from '../../core/scalars.ts';

/** The minimum interval between two sends. Each notice contains all that the one before it said, so the latest suffices. */
const MIN_INTERVAL: Millis = 50;

/** The latest notice of each credential that other processes do not have yet. Bounded by the number of accounts, unless many are replaced. */
export class NoticeOutbox {
  readonly #latest = new Map<string, AccountNotice>();
  #dueAt = Number.NEGATIVE_INFINITY;

  /** When `take` returns what there is; undefined if there is nothing. */
  get dueAt(): Millis | undefined {
    return this.#latest.size === 0 ? undefined : this.#dueAt;
  }

  add(notice: AccountNotice): void {
    this.#latest.set(nameCredential(notice), notice);
  }

  /** Adds notices that could not be sent, unless there are later ones. */
  restore(notices: readonly AccountNotice[]): void {
    for (const notice of notices) if (!this.#latest.has(nameCredential(notice))) this.add(notice);
  }

  /** Returns the notices to send; none before `dueAt`. */
  take(now: Millis): readonly AccountNotice[] {
    if (this.#latest.size === 0 || now < this.#dueAt) return NO_NOTICES;
    const notices = [...this.#latest.values()];
    this.#latest.clear();
    this.#dueAt = now + MIN_INTERVAL;
    return notices;
  }
}

const NO_NOTICES: readonly AccountNotice[] = [];

/** Names what a notice is about. The old and the new credential of an account differ, because processes replace it one after another. */
export function nameCredential({ upstream, account, credentialTag }: AccountNotice): string {
  return `${upstream}\0${account}\0${credentialTag}`;
}
