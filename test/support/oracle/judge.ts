import type { Outcome, Verdict } from '../../../src/core/exchange/attempt-outcome.ts';

/** What a client learned of one request. */
export type Told = 'done' | 'declined' | 'unknown' | 'in use' | 'expired' | 'not done' | 'nothing';

export function toldBy(verdict: Verdict, outcome: Outcome | undefined): Told {
  switch (verdict.kind) {
    case 'gone':
      return 'nothing';
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

/** The same, of an answer over a socket. @param header by its name in lower case */
export function toldByAnswer(status: number, header: (name: string) => string | undefined, body: string): Told {
  if (header('tidegate-outcome') === 'unknown') return 'unknown';
  const isOurs = header('content-type') === 'application/problem+json';
  const { reason } = (isOurs ? JSON.parse(body) : {}) as { reason?: string };
  if (reason === 'key_in_use') return 'in use';
  if (reason === 'key_expired') return 'expired';
  if (status < 300) return 'done';
  return status === 402 ? 'declined' : 'not done';
}

/** What is true of an intent when its client is told something. */
export interface Truth {
  /** How often the upstream has carried it out. */
  readonly times: number;
  /** Some attempt of it, here or in a request before, left it open; and no answer to it has reached its client since. */
  readonly isOpen: boolean;
  /** Its client has had an answer to it, so that it knows. */
  readonly isKnown: boolean;
}

/** What is wrong about what was told; undefined where it is true. */
export function contradiction(told: Told, { times, isOpen, isKnown }: Truth): string | undefined {
  if (times > 1) return `carried out ${times} times`;
  switch (told) {
    case 'done':
      return times === 1 ? undefined : 'told as done, and it is not';
    case 'declined':
      return times === 0 ? undefined : 'told as declined, and it is done';
    case 'not done':
      return times === 0 || isKnown ? undefined : 'told as not done, and it is';
    case 'unknown':
      return isOpen ? undefined : 'told as unknown, and it is certain';
    case 'expired':
      return isKnown ? undefined : 'told as answered, and its client has no answer';
    case 'in use':
    case 'nothing':
      return undefined;
  }
}
