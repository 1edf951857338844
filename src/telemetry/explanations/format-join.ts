import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import { humanizeDuration, toSeconds } from '../format-values.ts';

type JoinStep = Extract<TraceStep, { readonly what: 'joined' }>;

/** The numbers of the wait for an equal request, for programs. */
export function joinFields({ waited, equalId }: JoinStep): Readonly<Record<string, unknown>> {
  return { waitedSeconds: toSeconds(waited), equalId: equalId ?? null };
}

/** The text about the wait for an equal request. */
export function formatJoin({ waited, equalId }: JoinStep): string {
  const wait = `waited ${humanizeDuration(waited)} for an equal request`;
  return equalId === undefined ? `${wait}, and is sent itself` : `${wait}, and gets the response to ${equalId}`;
}
