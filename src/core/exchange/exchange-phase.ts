/** Where an exchange is. */
export type Phase = 'new' | 'body' | 'claiming' | 'queued' | 'sending' | 'asleep' | 'done';

/** Where its client may leave it. */
export const DURING = {
  new: undefined,
  body: 'body',
  claiming: 'claim',
  queued: 'queue',
  sending: 'attempt',
  asleep: 'wait',
  done: undefined,
} as const satisfies Readonly<Record<Phase, string | undefined>>;
