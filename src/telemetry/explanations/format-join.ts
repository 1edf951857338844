import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import { humanizeDuration } from '../format-values.ts';

/** The text about the wait for an equal request. */
export function formatJoin({ waited, hasResponse }: Extract<TraceStep, { readonly what: 'joined' }>): string {
  const wait = `waited ${humanizeDuration(waited)} for an equal request`;
  return hasResponse ? `${wait}, and gets its response` : `${wait}, and is sent itself`;
}
