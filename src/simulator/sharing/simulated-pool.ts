/** Replicas of a simulation that share their limits in a pool, with the very code of those that ask Redis. */
import { nameNested } from '../../core/limits/limit-ref.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM } from '../scenario.ts';
import type { World, WorldParts } from '../engine/simulator.ts';
import type { Borrower } from '../../sharing/replicas/lease-client.ts';
import { MemoryPool } from '../../sharing/replicas/memory-backend.ts';
import { PoolMember } from '../../sharing/replicas/replica-limit-client.ts';
import type { Call } from '../../sharing/replicas/replica-protocol.ts';
import { MemoryStore } from '../../store/memory-store.ts';
import { nameOf } from '../../sharing/protocol/limit-terms.ts';

export interface PoolOptions {
  readonly maxTracked: number;
  /** One way, between a replica and the pool. */
  readonly latency: Millis;
  /** How long a call may take. */
  readonly timeout?: Millis;
  /** When the pool cannot be reached, by whom. */
  readonly isAway?: (replica: number, now: Millis) => boolean;
  /** The pool's clock, by the world's. */
  readonly clock?: (now: Millis) => Millis;
  /** When a replica dies, by its number. */
  readonly deaths?: ReadonlyMap<number, Millis>;
}

export interface PoolTally {
  calls: number;
  news: number;
  /** Of replicas: when each went on alone, and came back. */
  readonly alone: { readonly replica: number; readonly at: Millis; readonly isAlone: boolean }[];
}

const TIMEOUT: Millis = 150;

export function poolAmong(
  scenario: Scenario,
  {
    maxTracked,
    latency,
    timeout = TIMEOUT,
    isAway = () => false,
    clock = (now) => now,
    deaths = new Map(),
  }: PoolOptions,
): Pick<WorldParts, 'makeStore' | 'connect'> & { readonly pool: MemoryPool; readonly tally: PoolTally } {
  const pool = new MemoryPool();
  const tally: PoolTally = { calls: 0, news: 0, alone: [] };
  const members: PoolMember[] = [];
  const stores: MemoryStore[] = [];
  const rearms: (() => void)[] = [];
  let world: World | undefined;
  const now = (): Millis => world?.now() ?? 0;
  const later = (delay: Millis, run: () => void): void => world?.at(now() + delay, { run, isOurs: true });
  const isGone = (replica: number): boolean => (deaths.get(replica) ?? Number.POSITIVE_INFINITY) <= now();
  const isCut = (replica: number): boolean => isGone(replica) || isAway(replica, now());

  const ask = (replica: number, borrower: Borrower, call: Call): void => {
    let isOver = false;
    const giveUp = (): void => {
      if (isOver || isGone(replica)) return;
      isOver = true;
      borrower.miss(now());
      world?.rearm(replica);
    };
    later(timeout, giveUp);
    later(latency, () => {
      if (isCut(replica)) return;
      tally.calls += 1;
      const answer = pool.call(borrower.ref, borrower.settings, call, clock(now()));
      if (answer.isNews) {
        tally.news += 1;
        for (const [other, member] of members.entries()) {
          if (other !== replica) {
            later(latency, () => {
              if (isCut(other)) return;
              member.hearNews({ name: nameOf(borrower.ref), terms: answer.terms, now: answer.now }, now());
              world?.rearm(other);
            });
          }
        }
      }
      later(latency, () => {
        if (isOver || isCut(replica)) return;
        isOver = true;
        borrower.hear(answer, now());
        world?.rearm(replica);
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
        if (at >= wakeAt || world === undefined) return;
        wakeAt = at;
        later(Math.max(0, at - now()), () => {
          if (now() < wakeAt || isGone(replica)) return;
          wakeAt = Number.POSITIVE_INFINITY;
          member.wake(now());
          rearm();
        });
      };
      const member = new PoolMember({
        holder: `replica-${replica}`,
        clock: { now },
        random,
        call: (borrower, call) => ask(replica, borrower, call),
        hold: (hold) => {
          for (const [other, each] of members.entries()) {
            if (other !== replica) later(2 * latency, () => !isCut(other) && each.hearHold(hold, now()));
          }
        },
        onCut: (ref, { cause, from, to }) =>
          listen({ type: 'cut', upstream: ref.upstream, ...nameNested(ref), scope: ref.scope, cause, from, to }),
        rearm,
        onAway: (isAlone) => tally.alone.push({ replica, at: now(), isAlone }),
      });
      members[replica] = member;
      rearms[replica] = rearm;
      const store = new MemoryStore({
        upstreams: [{ name: UPSTREAM, ...scenario.policy }],
        maxTracked,
        random,
        listen,
        makeMeter: (ref, rate) => member.makeMeter(ref, rate),
        sharing: member,
      });
      stores[replica] = store;
      return store;
    },
    connect: (built) => {
      world = built;
      for (const [replica, member] of members.entries()) {
        const store = stores[replica];
        const gate = built.gates[replica];
        if (store === undefined || gate === undefined) continue;
        member.wire({ store, supply: (limit, at) => gate.supply(limit, at) });
        member.wake(0);
        rearms[replica]?.();
      }
    },
  };
}
