/** Replicas of a simulation that lease from one lender, with the very code of the workers. */
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import type { WorldParts, World } from '../engine/simulator.ts';
import { Leaseholder } from '../../sharing/workers/limit-client.ts';
import { Lender } from '../../sharing/workers/limit-server.ts';
import type { LendingTerms } from '../../sharing/workers/lease-timing.ts';
import { NEARBY } from '../../sharing/workers/lease-timing.ts';
import type { Report, Tidings } from '../../sharing/workers/worker-protocol.ts';
import { MemoryStore } from '../../store/memory-store.ts';

export interface LeaseOptions {
  readonly maxTracked: number;
  /** One way, between a replica and the lender. */
  readonly latency: Millis;
  readonly terms?: LendingTerms;
  /** When a replica dies, by its number: from then on it neither says nor hears anything, and its clients get no answers from it. */
  readonly deaths?: ReadonlyMap<number, Millis>;
}

/** @param seed of the lender's own chance */
export function leaseAmong(
  scenario: Scenario,
  seed: number,
  { maxTracked, latency, terms = NEARBY, deaths = new Map() }: LeaseOptions,
): Pick<WorldParts, 'makeStore' | 'connect'> {
  const random: Random = seededRandom(seed + 2 ** 30);
  const holders: Leaseholder[] = [];
  const stores: MemoryStore[] = [];
  const { scope, rate, nested = [] } = scenario.policy;
  const shared = [{ name: '', scope, isKeyed: false }, ...nested].flatMap(
    ({ name, scope: whose, isKeyed }): LimitRef[] =>
      whose === 'upstream' && !isKeyed ? [{ upstream: UPSTREAM, nested: name, scope: whose, key: '' }] : [],
  );
  const rateOf = (name: string): RateSettings => nested.find((each) => each.name === name)?.rate ?? rate;
  let world: World | undefined;
  let wakeAt = Number.POSITIVE_INFINITY;
  const isDead = (replica: number): boolean => (deaths.get(replica) ?? Number.POSITIVE_INFINITY) <= now();
  const now = (): Millis => world?.now() ?? 0;
  const later = (delay: Millis, run: () => void): void => world?.at(now() + delay, { run, isOurs: true });

  const rearm = (): void => {
    const at = lender.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at >= wakeAt) return;
    wakeAt = at;
    later(Math.max(0, at - now()), () => {
      if (now() < wakeAt) return;
      wakeAt = Number.POSITIVE_INFINITY;
      lender.wake(now());
      rearm();
    });
  };
  const lender = new Lender(
    {
      terms,
      makeMeter: (ref) => new LocalMeter(rateOf(ref.nested), random),
      listen: () => undefined,
      send: (to, tidings: Tidings) => {
        later(latency, () => {
          if (isDead(to)) return;
          holders[to]?.hear(tidings, now());
          world?.rearm(to);
        });
      },
      maxLimits: maxTracked,
    },
    shared,
  );
  return {
    makeStore: (replica, ofWorld, listen) => {
      const holder = new Leaseholder({
        schedule: scheduler(replica),
        send: (report: Report) => {
          if (isDead(replica)) return;
          later(latency, () => {
            lender.hear(replica, report, now());
            rearm();
          });
        },
      });
      holders[replica] = holder;
      const store = new MemoryStore({
        upstreams: [{ name: UPSTREAM, ...scenario.policy }],
        maxTracked,
        random: ofWorld,
        listen,
        makeMeter: (ref, rate) => holder.makeMeter(ref, rate),
        sharing: holder,
      });
      stores[replica] = store;
      return store;
    },
    connect: (built) => {
      world = built;
      for (const [replica, holder] of holders.entries()) {
        const store = stores[replica];
        const gate = built.gates[replica];
        if (store === undefined || gate === undefined) continue;
        holder.wire({ store, supply: (limit, at) => gate.supply(limit, at) }, 0);
        lender.join(replica, 0);
      }
      for (const [replica, at] of deaths) {
        built.at(at, {
          isOurs: true,
          run: () => {
            lender.leave(replica, now());
            rearm();
          },
        });
      }
    },
  };

  function scheduler(replica: number): (within: Millis) => void {
    let dueAt = Number.POSITIVE_INFINITY;
    return (within) => {
      const at = now() + within;
      if (at >= dueAt) return;
      dueAt = at;
      later(within, () => {
        if (now() < dueAt) return;
        dueAt = Number.POSITIVE_INFINITY;
        holders[replica]?.flush(now());
      });
    };
  }
}
