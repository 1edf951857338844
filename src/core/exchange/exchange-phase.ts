import type { Millis } from '../scalars.ts';
import type { ExchangeStep } from './steps.ts';

/** What an exchange is waiting for. Only a wait before a retry or a poll carries data of its own; the others are constants. */
export type ExchangePhase =
  /** `joining`: an equal read; `looking`: for what is recorded of the write. */
  | { readonly name: 'new' | 'body' | 'claiming' | 'joining' | 'looking' | 'queued' | 'sending' | 'done' }
  | { readonly name: 'asleep'; readonly until: Millis };

export const PHASES = {
  new: { name: 'new' },
  body: { name: 'body' },
  claiming: { name: 'claiming' },
  joining: { name: 'joining' },
  looking: { name: 'looking' },
  queued: { name: 'queued' },
  sending: { name: 'sending' },
  done: { name: 'done' },
} as const satisfies Readonly<Record<string, ExchangePhase>>;

/** The phases that begin with a step, whatever the gate says. */
export const PHASE_OF_STEP: { readonly [step in ExchangeStep['do']]?: ExchangePhase } = {
  body: PHASES.body,
  claim: PHASES.claiming,
  join: PHASES.joining,
  look: PHASES.looking,
};

/** The name, in explanations, of the phase in which the client disconnected; undefined for a phase in which it cannot. */
export const PHASE_LABELS = {
  new: undefined,
  body: 'body',
  claiming: 'claim',
  joining: 'join',
  looking: 'claim',
  queued: 'queue',
  sending: 'attempt',
  asleep: 'wait',
  done: undefined,
} as const satisfies Readonly<Record<ExchangePhase['name'], string | undefined>>;
