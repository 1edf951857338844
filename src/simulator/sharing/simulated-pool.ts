/** Simulated replicas that share their limits in a pool, with the code of replicas over Redis. */
import { limitId, nestedLimitField } from '../../core/limits/limit-ref.ts';
import type { Millis } from '../../core/scalars.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM_NAME } from '../scenario.ts';
import type { Simulator, SimulatorParts } from '../engine/simulator.ts';
import type { LeaseClient } from '../../sharing/replicas/lease-client.ts';
import { MemoryBackend } from '../../sharing/replicas/memory-backend.ts';
import { ReplicaLimitClient } from '../../sharing/replicas/replica-limit-client.ts';
import type { LeaseRequest } from '../../sharing/replicas/replica-protocol.ts';
import { MemoryStore } from '../../store/memory-store.ts';

export interface SimulatedPoolOptions {
  readonly maxTracked: number;
  /** One-way delay between a replica and the pool. */
  readonly latency: Millis;
  /** The timeout of a call, in ms. */
  readonly timeout?: Millis;
  /** When the pool is unreachable, and for which replicas. */
  readonly isUnreachable?: (replica: number, now: Millis) => boolean;
  /** Converts simulated time to the pool's clock. */
  readonly clock?: (now: Millis) => Millis;
  /** When a replica dies, by its number. */
  readonly deaths?: ReadonlyMap<number, Millis>;
}

export interface SimulatedPoolStats {
  calls: number;
  announcements: number;
  /** When each replica began and ended its fallback to limits of its own. */
  readonly fallbacks: { readonly replica: number; readonly at: Millis; readonly isAlone: boolean }[];
}

const CALL_TIMEOUT: Millis = 150;

export function makeSimulatedPool(
  scenario: Scenario,
  {
    maxTracked,
    latency,
    timeout = CALL_TIMEOUT,
    isUnreachable = () => false,
    clock = (now) => now,
    deaths = new Map(),
  }: SimulatedPoolOptions,
): Pick<SimulatorParts, 'makeStore' | 'connect'> & {
  readonly pool: MemoryBackend;
  readonly tally: SimulatedPoolStats;
} {
  const pool = new MemoryBackend();
  const tally: SimulatedPoolStats = { calls: 0, announcements: 0, fallbacks: [] };
  const members: ReplicaLimitClient[] = [];
  const stores: MemoryStore[] = [];
  const rearms: (() => void)[] = [];
  let simulator: Simulator | undefined;
  const now = (): Millis => simulator?.now() ?? 0;
  const schedule = (delay: Millis, run: () => void): void =>
    simulator?.schedule(now() + delay, { run, isProxyEvent: true });
  const isDead = (replica: number): boolean => (deaths.get(replica) ?? Number.POSITIVE_INFINITY) <= now();
  const isDisconnected = (replica: number): boolean => isDead(replica) || isUnreachable(replica, now());

  const callPool = (replica: number, leaseClient: LeaseClient, call: LeaseRequest): void => {
    let isOver = false;
    const onTimeout = (): void => {
      if (isOver || isDead(replica)) return;
      isOver = true;
      leaseClient.onNoResponse(now());
      simulator?.rearm(replica);
    };
    schedule(timeout, onTimeout);
    schedule(latency, () => {
      if (isDisconnected(replica)) return;
      tally.calls += 1;
      const answer = pool.serve(leaseClient.ref, leaseClient.settings, call, clock(now()));
      if (answer.shouldBroadcast) {
        tally.announcements += 1;
        for (const [other, member] of members.entries()) {
          if (other !== replica) {
            schedule(latency, () => {
              if (isDisconnected(other)) return;
              member.onBroadcast({ limitId: limitId(leaseClient.ref), terms: answer.terms, now: answer.now }, now());
              simulator?.rearm(other);
            });
          }
        }
      }
      schedule(latency, () => {
        if (isOver || isDisconnected(replica)) return;
        isOver = true;
        leaseClient.onResponse(answer, now());
        simulator?.rearm(replica);
      });
    });
  };

  return {
    pool,
    tally,
    makeStore: (replica, random, listen) => {
      let wakeAt = Number.POSITIVE_INFINITY;
      const rearm = (): void => {
        const at = member.nextWake() ?? Number.POSITIVE_INFINITY;
        if (at >= wakeAt || simulator === undefined) return;
        wakeAt = at;
        schedule(Math.max(0, at - now()), () => {
          if (now() < wakeAt || isDead(replica)) return;
          wakeAt = Number.POSITIVE_INFINITY;
          member.wake(now());
          rearm();
        });
      };
      const member = new ReplicaLimitClient({
        replicaId: `replica-${replica}`,
        clock: { now },
        random,
        call: (leaseClient, call) => callPool(replica, leaseClient, call),
        publishHold: (hold) => {
          for (const [other, each] of members.entries()) {
            if (other !== replica) schedule(2 * latency, () => !isDisconnected(other) && each.applyHold(hold, now()));
          }
        },
        onDecrease: (ref, { cause, from, to }) =>
          listen({ type: 'cut', upstream: ref.upstream, ...nestedLimitField(ref), scope: ref.scope, cause, from, to }),
        rearm,
        onDegraded: (isAlone) => tally.fallbacks.push({ replica, at: now(), isAlone }),
      });
      members[replica] = member;
      rearms[replica] = rearm;
      const store = new MemoryStore({
        upstreams: [{ name: UPSTREAM_NAME, ...scenario.policy }],
        maxTracked,
        random,
        listen,
        makeMeter: (ref, rate) => member.makeMeter(ref, rate),
        sharingHooks: member,
      });
      stores[replica] = store;
      return store;
    },
    connect: (built) => {
      simulator = built;
      for (const [replica, member] of members.entries()) {
        const store = stores[replica];
        const gate = built.gates[replica];
        if (store === undefined || gate === undefined) continue;
        member.bind({ store, onTokensSupplied: (limit, at) => gate.onTokensSupplied(limit, at) });
        member.wake(0);
        rearms[replica]?.();
      }
    },
  };
}
