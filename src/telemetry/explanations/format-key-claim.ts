import type { Step } from '../../core/exchange/exchange-observer.ts';
import { tellDuration } from './format-values.ts';

/** What became of its claim to its idempotency key. */
export function tellClaim({ waited, why }: Extract<Step, { readonly what: 'claimed' }>): string {
  switch (why) {
    case undefined:
      return `waited ${tellDuration(waited)} for another request with its idempotency key to end`;
    case 'key_in_use': {
      const still = 'another request with its idempotency key is under way';
      return waited < 1 ? `${why}: ${still}` : `${why} after ${tellDuration(waited)}: ${still}`;
    }
    case 'draining':
      return `draining after ${tellDuration(waited)} of waiting for another request with its idempotency key`;
    case 'key_expired':
      return `${why}: it was sent before, longer ago than the upstream remembers keys`;
  }
}
