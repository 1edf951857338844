import type { Millis, Random } from '../scalars.ts';

/** A quarantine, as processes share it. */
export interface SharedQuarantine {
  /** When it began. */
  readonly since: Millis;
  /** When the first request of its evidence was sent, or the last failed probe: an accepted request that was sent later ends it. */
  readonly evidenceSentAt: Millis;
  /** From one probe to the next. */
  readonly interval: Millis;
  readonly probeAt: Millis;
  readonly trialAt: Millis;
  /** Unrelated clients were rejected. */
  readonly isCommon: boolean;
  /** Of all rejected clients, unless unrelated ones were rejected: see `RejectedRequester`. */
  readonly fairnessKey: string;
  /** The excluded clients; of more than `MAX_NOTICE_CLIENTS` those that were rejected last. */
  readonly clients: readonly string[];
}

/** The most clients that a notice names. */
export const MAX_NOTICE_CLIENTS = 50;

/**
 * All that other processes have to know of an account, so that each notice suffices, in any order, repeated or after lost ones: a
 * process merges it with what it knows, by maxima and minima. Times are on the clock of the process that has the notice.
 */
export interface AccountNotice {
  readonly upstream: string;
  readonly account: string;
  /** A keyed hash of the credential that this is about. */
  readonly credentialTag: string;
  /** When the latest request that was accepted was sent; undefined if none was. */
  readonly acceptedSentAt?: Millis | undefined;
  /** Undefined if the account is in service. */
  readonly quarantine?: SharedQuarantine | undefined;
}

/** How a pool shares its accounts with other processes. */
export interface AccountSharing {
  /** A hash with a key that only processes with the same client hashes have. */
  readonly hash: (text: string) => string;
  readonly onChanged: (notice: Omit<AccountNotice, 'upstream'>) => void;
  /** Another process has ended a quarantine that this process has reported. @param after how long it lasted */
  readonly onReturned: (account: string, after: Millis) => void;
  readonly random: Random;
}

/** Moves the times of a notice to another clock. @param by what the other clock is ahead */
export function shiftNotice(notice: AccountNotice, by: Millis): AccountNotice {
  const { acceptedSentAt, quarantine } = notice;
  return {
    ...notice,
    acceptedSentAt: acceptedSentAt === undefined ? undefined : acceptedSentAt + by,
    quarantine: quarantine && {
      ...quarantine,
      since: quarantine.since + by,
      evidenceSentAt: quarantine.evidenceSentAt + by,
      probeAt: quarantine.probeAt + by,
      trialAt: quarantine.trialAt + by,
    },
  };
}
