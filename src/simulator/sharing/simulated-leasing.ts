/** Simulated replicas that lease from one server, with the code of the workers. */
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM_NAME } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import type { SimulatorParts, Simulator } from '../engine/simulator.ts';
import { LimitClient } from '../../sharing/workers/limit-client.ts';
import { LimitServer } from '../../sharing/workers/limit-server.ts';
import type { LeaseTiming } from '../../sharing/workers/lease-timing.ts';
import { WORKER_LEASE_TIMING } from '../../sharing/workers/lease-timing.ts';
import type { UsageReport, LimitUpdates } from '../../sharing/workers/worker-protocol.ts';
import { MemoryStore } from '../../store/memory-store.ts';

export interface SimulatedLeasingOptions {
  readonly maxTracked: number;
  /** One-way delay between a replica and the limit server. */
  readonly latency: Millis;
  readonly terms?: LeaseTiming;
  /** When a replica dies, by its number. From then on it sends and receives nothing, and its clients get no responses from it. */
  readonly deaths?: ReadonlyMap<number, Millis>;
}

/** @param seed of the server's random numbers */
export function makeSimulatedLeasing(
  scenario: Scenario,
  seed: number,
  { maxTracked, latency, terms = WORKER_LEASE_TIMING, deaths = new Map() }: SimulatedLeasingOptions,
): Pick<SimulatorParts, 'makeStore' | 'connect'> {
  const random: Random = seededRandom(seed + 2 ** 30);
  const limitClients: LimitClient[] = [];
  const stores: MemoryStore[] = [];
  const { scope, rate, nested = [] } = scenario.policy;
  const shared = [{ name: '', scope, isKeyed: false }, ...nested].flatMap(
    ({ name, scope: whose, isKeyed }): LimitRef[] =>
      whose === 'upstream' && !isKeyed ? [{ upstream: UPSTREAM_NAME, nested: name, scope: whose, key: '' }] : [],
  );
  const rateOf = (name: string): RateSettings => nested.find((each) => each.name === name)?.rate ?? rate;
  let simulator: Simulator | undefined;
  let wakeAt = Number.POSITIVE_INFINITY;
  const isDead = (replica: number): boolean => (deaths.get(replica) ?? Number.POSITIVE_INFINITY) <= now();
  const now = (): Millis => simulator?.now() ?? 0;
  const schedule = (delay: Millis, run: () => void): void =>
    simulator?.schedule(now() + delay, { run, isProxyEvent: true });

  const rearm = (): void => {
    const at = limitServer.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at >= wakeAt) return;
    wakeAt = at;
    schedule(Math.max(0, at - now()), () => {
      if (now() < wakeAt) return;
      wakeAt = Number.POSITIVE_INFINITY;
      limitServer.wake(now());
      rearm();
    });
  };
  const limitServer = new LimitServer(
    {
      timing: terms,
      makeMeter: (ref) => new LocalMeter(rateOf(ref.nested), random),
      listen: () => undefined,
      send: (to, update: LimitUpdates) => {
        schedule(latency, () => {
          if (isDead(to)) return;
          limitClients[to]?.onUpdates(update, now());
          simulator?.rearm(to);
        });
      },
      maxLimits: maxTracked,
    },
    shared,
  );
  return {
    makeStore: (replica, storeRandom, listen) => {
      const limitClient = new LimitClient({
        schedule: scheduler(replica),
        send: (report: UsageReport) => {
          if (isDead(replica)) return;
          schedule(latency, () => {
            limitServer.onReport(replica, report, now());
            rearm();
          });
        },
      });
      limitClients[replica] = limitClient;
      const store = new MemoryStore({
        upstreams: [{ name: UPSTREAM_NAME, ...scenario.policy }],
        maxTracked,
        random: storeRandom,
        listen,
        makeMeter: (ref, rate) => limitClient.makeMeter(ref, rate),
        sharingHooks: limitClient,
      });
      stores[replica] = store;
      return store;
    },
    connect: (built) => {
      simulator = built;
      for (const [replica, limitClient] of limitClients.entries()) {
        const store = stores[replica];
        const gate = built.gates[replica];
        if (store === undefined || gate === undefined) continue;
        limitClient.bind({ store, onTokensSupplied: (limit, at) => gate.onTokensSupplied(limit, at) }, 0);
        limitServer.join(replica, 0);
      }
      for (const [replica, at] of deaths) {
        built.schedule(at, {
          isProxyEvent: true,
          run: () => {
            limitServer.leave(replica, now());
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
      schedule(within, () => {
        if (now() < dueAt) return;
        dueAt = Number.POSITIVE_INFINITY;
        limitClients[replica]?.flush(now());
      });
    };
  }
}
