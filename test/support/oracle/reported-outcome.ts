import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';

/** What a client learned from one request. */
export type ReportedOutcome = 'done' | 'declined' | 'unknown' | 'in use' | 'expired' | 'not done' | 'nothing';

export function outcomeOfVerdict(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): ReportedOutcome {
  switch (verdict.kind) {
    case 'gone':
      return 'nothing';
    case 'replay':
    case 'share':
      return 'done';
    case 'unknown':
      return 'unknown';
    case 'fail':
      return 'not done';
    case 'refuse':
      return verdict.why === 'key_in_use' ? 'in use' : verdict.why === 'key_expired' ? 'expired' : 'not done';
    case 'forward': {
      if (verdict.unknown) return 'unknown';
      const status = outcome?.kind === 'response' ? outcome.status : 0;
      if (status < 300) return 'done';
      return status === 402 ? 'declined' : 'not done';
    }
  }
}

/** Like `outcomeOfVerdict`, for a response received over a socket. @param header by its lower-case name */
export function outcomeOfAnswer(
  status: number,
  header: (name: string) => string | undefined,
  body: string,
): ReportedOutcome {
  if (header('tidegate-outcome') === 'unknown') return 'unknown';
  const isProxyAnswer = header('content-type') === 'application/problem+json';
  const { reason } = (isProxyAnswer ? JSON.parse(body) : {}) as { reason?: string };
  if (reason === 'key_in_use') return 'in use';
  if (reason === 'key_expired') return 'expired';
  if (status < 300) return 'done';
  return status === 402 ? 'declined' : 'not done';
}

/** The facts about an intent when its client receives a response. */
export interface IntentFacts {
  /** How often the upstream has carried it out. */
  readonly times: number;
  /** The outcome of an attempt is unknown, and no response has reached the client since. */
  readonly isOpen: boolean;
  /** The client has received a response to the write. */
  readonly isKnown: boolean;
  /** A request has the key, or had it until its end is known. */
  readonly isInUse: boolean;
}

/** The contradiction between a reported outcome and the facts; undefined if there is none. */
export function contradiction(
  reported: ReportedOutcome,
  { times, isOpen, isKnown, isInUse }: IntentFacts,
): string | undefined {
  if (times > 1) return `carried out ${times} times`;
  switch (reported) {
    case 'done':
      return times === 1 ? undefined : 'reported as done, but it is not';
    case 'declined':
      return times === 0 || isKnown ? undefined : 'reported as declined, but it is done';
    case 'not done':
      return times === 0 || isKnown ? undefined : 'reported as not done, but it is';
    case 'unknown':
      return isOpen ? undefined : 'reported as unknown, but it is certain';
    case 'expired':
      return isKnown ? undefined : 'reported as answered, but its client has no response';
    case 'in use':
      return isInUse ? undefined : 'reported as in use, but no request has the key';
    case 'nothing':
      return undefined;
  }
}
