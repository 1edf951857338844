import type { LatencyEstimates } from '../../core/retry/latency-estimates.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Gate } from '../../core/admission/gate.ts';
import type { ExchangeGate } from '../../core/admission/bypass-gate.ts';
import type { PollRegistry } from '../../core/polling/poll-registry.ts';
import type { Clock, Random } from '../../core/scalars.ts';
import type { ClientTimeouts } from '../../core/exchange/client-timeouts.ts';
import type { ExchangeObserver } from '../../core/exchange/exchange-observer.ts';
import type { ReplayMemory } from '../overload/replay-memory.ts';
import type { WakeTimer } from '../wake-timer.ts';
import type { HashFunction } from './client-hash.ts';
import type { KeyStore } from '../../core/idempotency/key-store.ts';
import type { KeptResponses } from '../idempotency/kept-responses.ts';
import type { WriteDigests } from '../idempotency/write-digests.ts';
import type { StalledClients } from '../response/stalled-clients.ts';
import type { InFlightReads } from '../coalescing/in-flight-reads.ts';

/** The keys of writes, and how they are identified. */
export interface WriteKeys {
  readonly keys: KeyStore;
  readonly digests: WriteDigests;
  /** Undefined if no response is kept. */
  readonly responses?: KeptResponses | undefined;
}

/** What every exchange of a process shares. */
export interface ExchangeContext extends WriteKeys {
  readonly gate: ExchangeGate;
  readonly gateTimer: WakeTimer;
  readonly clock: Clock;
  readonly random: Random;
  readonly listen: EventSink;
  /** Receives each step of each exchange. */
  readonly observer?: ExchangeObserver | undefined;
  readonly replayMemory: ReplayMemory;
  readonly costMemory: ReplayMemory;
  readonly hash: HashFunction;
  readonly answerTimes: LatencyEstimates;
  readonly clientTimeouts: ClientTimeouts;
  readonly stalledClients: StalledClients;
  /** This process's entry in Via: `1.1 tidegate-<instance>`. */
  readonly via: string;
  /** The scheme of the listener. */
  readonly proto: 'http' | 'https';
  readonly isDraining: () => boolean;
  readonly polls: PollRegistry;
  readonly reads: InFlightReads;
}

/** The context of exchanges that limits apply to. */
export interface ProxyContext extends ExchangeContext {
  readonly gate: Gate;
}
