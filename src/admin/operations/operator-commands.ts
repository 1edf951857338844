import type { Draining, ResetClient, SteeredUpstream } from '../api/action-schemas.ts';
import type { ClientRow, UpstreamStatus } from '../api/response-schemas.ts';
import type { Command, Done } from '../api/admin-operations.ts';
import { suggest } from '../../config/values/suggest.ts';
import type { Listen, OperatorEvent } from '../../core/events/proxy-events.ts';
import type { Order } from '../../core/limits/operator-override.ts';
import type { Clock, Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import { noteSteering } from './override-notes.ts';
import type { Stations } from './process-api.ts';
import type { Facts } from './process-group-operations.ts';

export interface ActingParts {
  readonly stations: Stations;
  readonly clock: Clock;
  readonly facts: () => Facts;
  /** As configured; undefined where nothing is. */
  readonly maxRateOf: (upstream: string) => PerSecond | undefined;
  readonly listen: Listen;
  readonly drain: () => void;
  /** As they stand. */
  readonly upstreams: () => Promise<readonly UpstreamStatus[]>;
  /** Whose keys are like this, those in most trouble first. */
  readonly findClients: (part: string) => Promise<readonly ClientRow[]>;
}

/** As much of a mistyped key as is likely to be right. */
const PREFIX = 6;

/** What operators say is done by all stations, and told of once. */
export class Acting {
  readonly #parts: ActingParts;
  #isDraining = false;

  constructor(parts: ActingParts) {
    this.#parts = parts;
  }

  async steer(upstream: string, command: Command, by: string): Promise<Done<SteeredUpstream>> {
    const { stations, clock, facts, listen, upstreams, maxRateOf } = this.#parts;
    const names = (await upstreams()).map(({ name }) => name);
    if (!names.includes(upstream)) return { kind: 'unknown', nearest: suggest(upstream, names) };
    const { mode, store, workers } = facts();
    const isLettingGo = command.do === 'unpin' || command.do === 'unblock';
    if (mode === 'observe' && !isLettingGo) return { kind: 'refused', why: OBSERVING };
    listen({ type: 'operator', by, ...tell(upstream, command) });
    const order = orderOf(command, clock.now());
    // What they share through Redis, nobody here lends to all of them.
    const isDivided = order.do === 'pin' && store === 'redis' && workers > 1;
    await stations.ask('steer', () => {
      return { upstream, order: isDivided ? { ...order, rate: order.rate / workers } : order };
    });
    const row = (await upstreams()).find(({ name }) => name === upstream);
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // a reload has taken it away meanwhile
    return {
      kind: 'done',
      row: { ...row, notes: noteSteering(row, command, { ...facts(), maxRate: maxRateOf(upstream) }) },
    };
  }

  async reset(client: string, by: string): Promise<Done<ResetClient>> {
    const { stations, listen, facts, findClients } = this.#parts;
    const answers = await stations.ask('reset', () => ({ client }));
    const known = new Set([...answers.values()].flat());
    if (known.size === 0) {
      const [like] = await findClients(client.slice(0, PREFIX));
      return { kind: 'unknown', nearest: like?.key };
    }
    listen({ type: 'operator', by, action: 'reset', client });
    const row = (await findClients(client)).find(({ key }) => key === client);
    if (row === undefined) return { kind: 'unknown', nearest: undefined }; // forgotten meanwhile, to make room
    const notes = ['It is judged by what it does from now on.', ...(facts().store === 'redis' ? [HELD_ELSEWHERE] : [])];
    return { kind: 'done', row: { ...row, alsoAt: [...known].filter((name) => name !== row.upstream), notes } };
  }

  drain(by: string): Draining {
    const { listen, drain } = this.#parts;
    // As a signal, a second one would mean at once.
    if (!this.#isDraining) {
      this.#isDraining = true;
      listen({ type: 'operator', by, action: 'drain' });
      drain();
    }
    return { phase: 'draining', notes: ['As on SIGTERM: soon no more is taken, and it ends when all is answered.'] };
  }
}

const HELD_ELSEWHERE = 'This process only: replicas that have heard that it is held keep to that.';
const OBSERVING = 'In observe mode every request is forwarded at once: there is nothing to steer.';

function orderOf(command: Command, now: Millis): Order {
  if (command.do !== 'block') return command;
  return { do: 'block', until: command.time === undefined ? Number.POSITIVE_INFINITY : now + command.time };
}

type Said = OperatorEvent extends infer Each ? (Each extends OperatorEvent ? Omit<Each, 'type' | 'by'> : never) : never;

function tell(upstream: string, command: Command): Said {
  switch (command.do) {
    case 'pin':
      return { action: 'pin', upstream, rate: command.rate };
    case 'block':
      return { action: 'block', upstream, time: command.time };
    case 'unpin':
    case 'unblock':
      return { action: command.do, upstream };
  }
}
