import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import { humanizeDuration, toSeconds } from '../format-values.ts';

type KeyClaimStep = Extract<TraceStep, { readonly what: 'claimed' }>;

/** The numbers of a claim, for programs. */
export function keyClaimFields({ waited, why }: KeyClaimStep): Readonly<Record<string, unknown>> {
  return { waitedSeconds: toSeconds(waited), reason: why ?? null };
}

/** The text about the claim of an idempotency key. */
export function formatKeyClaim({ waited, why }: KeyClaimStep): string {
  switch (why) {
    case undefined:
      return `waited ${humanizeDuration(waited)} for another request with its idempotency key`;
    case 'key_in_use': {
      const still = 'another request with its idempotency key is in flight';
      return waited < 1 ? `${why}: ${still}` : `${why} after ${humanizeDuration(waited)}: ${still}`;
    }
    case 'key_store_lost':
      return `${why}: what is known of its idempotency key cannot be read or stored`;
    case 'draining':
      return `draining after ${humanizeDuration(waited)} of waiting for another request with its idempotency key`;
    case 'key_expired':
      return `${why}: it was sent before, and the upstream has forgotten the key since`;
    case 'key_reused':
      return `${why}: an earlier request with the key had another query or body`;
    case 'key_ambiguous':
      return `${why}: cannot tell whether an earlier write with this key is from this client`;
    case 'key_overused':
      return `${why}: too many other clients have unfinished writes with its idempotency key`;
  }
}
