import type { AnswerTimes } from '../policy/answer-times.ts';
import type { Listen } from '../policy/events.ts';
import type { Gate } from '../policy/gate.ts';
import type { ExchangeGate } from '../policy/open-gate.ts';
import type { Polls } from '../policy/polls.ts';
import type { Clock, Random } from '../policy/types.ts';
import type { Watcher } from '../policy/watch.ts';
import type { ReplayMemory } from './body.ts';
import type { WakeTimer } from '../driving/wake-timer.ts';
import type { Hash } from './client-hash.ts';
import type { KeyBook } from './key-book.ts';
import type { StalledReaders } from './stalled-readers.ts';

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
