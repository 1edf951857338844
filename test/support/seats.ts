/** Gates over one store of each kind, in real time: what all of them promise is asked of each in the same words. */
import { performance } from 'node:perf_hooks';
import { onTestFinished } from 'vitest';
import { readFile } from '../../src/cli/read-file.ts';
import { callInTime } from '../../src/process/cluster/coalesced-timer.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { supplier } from '../../src/process/worker-membership.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../src/core/limits/meter.ts';
import type { Admission, Ticket } from '../../src/core/admission/ticket.ts';
import type { Millis, Outcome } from '../../src/core/exchange/attempt-outcome.ts';
import { shareByRedis } from '../../src/process/redis-sharing.ts';
import { Leaseholder } from '../../src/sharing/workers/limit-client.ts';
import { Lender } from '../../src/sharing/workers/limit-server.ts';
import { NEARBY } from '../../src/sharing/workers/lease-timing.ts';
import type { MemoryOptions, UpstreamSettings } from '../../src/store/memory-store.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { WakeTimer } from '../../src/http/wake-timer.ts';
import { response, SHARED, ShownTicket, upstreamSettings } from './policy.ts';
import { startRedis } from './redis-server.ts';

export const STORES = ['memory', 'leases', 'redis'] as const;

const clock = { now: (): Millis => performance.now() };
const random = Math.random;
const PATIENCE: Millis = 5000;

/** A request at a gate. */
export interface Standing {
  readonly ticket: Ticket;
  /** Undefined while it waits. */
  readonly told: Admission | undefined;
  /** When it was told. */
  readonly at: Millis;
}

/** A gate, and what one does there. */
export class Seat {
  readonly store: MemoryStore;
  readonly gate: Gate;
  readonly timer: WakeTimer;

  constructor(settings: UpstreamSettings, options: Partial<MemoryOptions> = {}) {
    const listen = (): void => undefined;
    this.store = new MemoryStore({ upstreams: [settings], maxTracked: 100, random, listen, ...options });
    this.gate = new Gate(this.store, listen);
    this.timer = new WakeTimer(this.gate, clock);
    onTestFinished(() => this.timer.stop());
  }

  arrive(client = 'client', refs: readonly LimitRef[] = [SHARED], credential = ''): Standing {
    const standing: { ticket: Ticket; told: Admission | undefined; at: Millis } = {
      ticket: new ShownTicket(credential, 'up', client, 1, refs, (told, at) => Object.assign(standing, { told, at })),
      told: undefined,
      at: clock.now(),
    };
    standing.told = this.gate.arrive(standing.ticket, clock.now() + PATIENCE, clock.now());
    this.timer.rearm();
    return standing;
  }

  send({ ticket }: Standing): void {
    this.gate.sent(ticket, clock.now());
  }

  /** The head of what was sent, and its end. */
  answer({ ticket }: Standing, outcome: Outcome = response(200)): void {
    this.gate.head(ticket, outcome, clock.now());
    this.gate.end(ticket, clock.now());
    this.gate.leave(ticket);
    this.timer.rearm();
  }

  /** Goes away, sent or not. */
  cancel({ ticket }: Standing): void {
    this.gate.cancel(ticket, clock.now());
    this.gate.leave(ticket);
    this.timer.rearm();
  }
}

/** Two that share a store; in memory they are one. */
export async function takeSeats(
  kind: (typeof STORES)[number],
  settings: Partial<UpstreamSettings> = {},
  options: Pick<MemoryOptions, 'maxLimits'> = {},
): Promise<readonly [Seat, Seat]> {
  const upstream = upstreamSettings({ queue: { maxWait: PATIENCE, maxDepth: 1000 }, ...settings });
  switch (kind) {
    case 'memory': {
      const seat = new Seat(upstream, options);
      return [seat, seat];
    }
    case 'leases': {
      const take = lendSeats(upstream, options);
      return [take(0), take(1)];
    }
    case 'redis': {
      const { url } = await startRedis();
      return [await seatAt(url, upstream, options), await seatAt(url, upstream, options)];
    }
  }
}

function lendSeats(upstream: UpstreamSettings, options: Partial<MemoryOptions>): (holder: number) => Seat {
  const holders = new Map<number, Leaseholder>();
  // What is said is heard in another turn, as between processes.
  const lender: Lender = new Lender(
    {
      terms: NEARBY,
      makeMeter: ({ nested }) =>
        new LocalMeter(upstream.nested?.find(({ name }) => name === nested)?.rate ?? upstream.rate, random),
      listen: () => undefined,
      send: (to, tidings) => void setImmediate(() => holders.get(to)?.hear(tidings, clock.now())),
      maxLimits: 100,
    },
    upstream.scope === 'upstream' ? [SHARED] : [],
  );
  const timer = new WakeTimer(lender, clock);
  onTestFinished(() => timer.stop());
  return (id) => {
    const holder: Leaseholder = new Leaseholder({
      schedule: callInTime(() => holder.flush(clock.now())),
      send: (report) =>
        void setImmediate(() => {
          lender.hear(id, report, clock.now());
          timer.rearm();
        }),
    });
    holders.set(id, holder);
    const makeMeter: MemoryOptions['makeMeter'] = (ref, rate) => holder.makeMeter(ref, rate);
    const seat = new Seat(upstream, { ...options, makeMeter, sharing: holder });
    holder.wire({ store: seat.store, supply: supplier(seat.gate, seat.timer) }, clock.now());
    lender.join(id, clock.now());
    timer.rearm();
    return seat;
  };
}

async function seatAt(url: string, upstream: UpstreamSettings, options: Partial<MemoryOptions>): Promise<Seat> {
  const yaml = `state: {store: redis, url: "${url}"}\nupstreams: {up: {url: "http://127.0.0.1:1"}}\n`;
  const loaded = loadConfig(yaml, 'test.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes' || loaded.config.state.store !== 'redis') throw new Error('no Redis is configured');
  const shared = await shareByRedis(loaded.config.state, { clock, random, listen: () => undefined });
  onTestFinished(() => shared.close());
  const seat = new Seat(upstream, { ...options, ...shared.options });
  shared.wire({ store: seat.store, supply: supplier(seat.gate, seat.timer) });
  return seat;
}
