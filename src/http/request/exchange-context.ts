import type { AnswerTimes } from '../../core/retry/latency-estimates.ts';
import type { Listen } from '../../core/events/proxy-events.ts';
import type { Gate } from '../../core/admission/gate.ts';
import type { ExchangeGate } from '../../core/admission/bypass-gate.ts';
import type { Polls } from '../../core/polling/poll-registry.ts';
import type { Clock, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Watcher } from '../../core/exchange/exchange-observer.ts';
import type { ReplayMemory } from './request-body.ts';
import type { WakeTimer } from '../wake-timer.ts';
import type { Hash } from './client-hash.ts';
import type { KeyBook } from '../idempotency/idempotency-registry.ts';
import type { StalledReaders } from '../response/stalled-clients.ts';

/** What an exchange has to do with. */
export interface ExchangeContext {
  readonly gate: ExchangeGate;
  readonly gateTimer: WakeTimer;
  readonly clock: Clock;
  readonly random: Random;
  readonly listen: Listen;
  /** Told of each step of each exchange. */
  readonly watcher?: Watcher | undefined;
  readonly replayMemory: ReplayMemory;
  readonly hash: Hash;
  readonly keys: KeyBook;
  readonly answerTimes: AnswerTimes;
  readonly stalledReaders: StalledReaders;
  /** How this instance calls itself in Via: `1.1 tidegate-<instance>`. */
  readonly via: string;
  /** What clients speak to us. */
  readonly proto: 'http' | 'https';
  readonly isDraining: () => boolean;
  readonly polls: Polls;
}

/** What all exchanges of this proxy share. */
export interface ProxyContext extends ExchangeContext {
  readonly gate: Gate;
}
