import {
  AUTH_REJECTIONS,
  type AuthRejection,
  type ClientState,
  type RequestOutcome,
} from '../../core/events/event-labels.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import { BoundedNameMap } from './bounded-name-map.ts';
import { CounterSet, type TimeSeries } from './counter-set.ts';

type EvictionCause = Extract<ProxyEvent, { type: 'client-evicted' }>['cause'];

export const CLIENT_STATES: readonly ClientState[] = ['normal', 'held', 'backoff', 'cooldown', 'restoring'];
const EVICTION_CAUSES: readonly EvictionCause[] = ['calm', 'troubled'];

const INITIAL_OUTCOMES: readonly RequestOutcome[] = ['forwarded', 'refused'];

/** Clients that have proven their names (`clients.auth`) and are not in `clients.names`: each adds several series. */
const MAX_PROVEN_NAMES = 100;

/** Counters of all clients together. Labels are clients named in the configuration, and a bounded number of proven names. */
export class ClientMetrics {
  readonly decreases: TimeSeries = { labels: {}, value: 0 };
  readonly evictions = new CounterSet<EvictionCause>((cause) => ({ cause }), EVICTION_CAUSES);
  /** All of them exist from the start, so that an alert sees the first increase. */
  readonly authRejections = new CounterSet<AuthRejection>((reason) => ({ reason }), AUTH_REJECTIONS);
  readonly #transitions = new CounterSet<number>((key) => ({
    from: CLIENT_STATES[Math.floor(key / CLIENT_STATES.length)] ?? 'other',
    to: CLIENT_STATES[key % CLIENT_STATES.length] ?? 'other',
  }));

  readonly #named: BoundedNameMap<CounterSet<RequestOutcome>>;

  /** @param named configured clients, which have series from the start */
  constructor(named: Iterable<string>) {
    const counters = (client: string) =>
      new CounterSet<RequestOutcome>((outcome) => ({ client, outcome }), INITIAL_OUTCOMES);
    this.#named = new BoundedNameMap(counters, () => named, MAX_PROVEN_NAMES);
  }

  countRequest(client: string, outcome: RequestOutcome): void {
    this.#named.get(client).count(outcome);
  }

  namedRequests(): Iterable<TimeSeries> {
    return this.#named.flatMap((counters) => counters.values());
  }

  countDecrease(): void {
    this.decreases.value += 1;
  }

  countTransition(from: ClientState, to: ClientState): void {
    this.#transitions.count(CLIENT_STATES.indexOf(from) * CLIENT_STATES.length + CLIENT_STATES.indexOf(to));
  }

  transitions(): Iterable<TimeSeries> {
    return this.#transitions.values();
  }
}
