import type { ClientState, RequestOutcome, TideEvent } from '../../core/events/proxy-events.ts';
import { ByName } from './bounded-name-map.ts';
import { CounterSet, type Series } from './counter-set.ts';

type EvictionCause = Extract<TideEvent, { type: 'client-evicted' }>['cause'];

export const CLIENT_STATES: readonly ClientState[] = ['normal', 'held', 'backoff', 'cooldown', 'restoring'];
const EVICTION_CAUSES: readonly EvictionCause[] = ['calm', 'troubled'];

const FROM_THE_START: readonly RequestOutcome[] = ['forwarded', 'refused'];

/** What is counted of all clients together: one client is never a label, but for those that the configuration names. */
export class ClientSeries {
  readonly cuts: Series = { labels: {}, value: 0 };
  readonly evictions = new CounterSet<EvictionCause>((cause) => ({ cause }), EVICTION_CAUSES);
  readonly #transitions = new CounterSet<number>((key) => ({
    from: CLIENT_STATES[Math.floor(key / CLIENT_STATES.length)] ?? 'other',
    to: CLIENT_STATES[key % CLIENT_STATES.length] ?? 'other',
  }));

  readonly #named: ByName<CounterSet<RequestOutcome>>;

  /** @param named clients that have series from the start */
  constructor(named: Iterable<string>) {
    const counters = (client: string) =>
      new CounterSet<RequestOutcome>((outcome) => ({ client, outcome }), FROM_THE_START);
    this.#named = new ByName(counters, named);
  }

  done(client: string, outcome: RequestOutcome): void {
    this.#named.get(client).count(outcome);
  }

  ofNamed(): Iterable<Series> {
    return this.#named.gather((counters) => counters.values());
  }

  cut(): void {
    this.cuts.value += 1;
  }

  changed(from: ClientState, to: ClientState): void {
    this.#transitions.count(CLIENT_STATES.indexOf(from) * CLIENT_STATES.length + CLIENT_STATES.indexOf(to));
  }

  transitions(): Iterable<Series> {
    return this.#transitions.values();
  }
}
