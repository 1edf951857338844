/** Checks in virtual time: who asks sends what passes to an upstream with a limit, and reports what came of some of it. */
import { check } from '../../src/core/exchange/external-authorization.ts';
import type { Effects } from '../../src/core/exchange/effects.ts';
import { Drive } from '../../src/core/exchange/exchange-driver.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { Millis, Verdict } from '../../src/core/exchange/attempt-outcome.ts';
import type { LimitModel } from '../../src/simulator/limit-models/limit-model.ts';
import { response, SHARED } from './policy.ts';
import type { World } from './policy.ts';

export interface Asked {
  readonly client?: string;
  readonly refs?: readonly LimitRef[];
  /** How long it may wait; a second unless given. */
  readonly wait?: Millis;
}

/** Asks now, and tells once what it was told. */
export function ask(
  world: World,
  { client = 'client', refs = [SHARED], wait = 1000 }: Asked,
  told: (verdict: Verdict) => void,
): Drive {
  const nothing = (): never => {
    throw new Error('a check does nothing but ask');
  };
  const effects: Effects = {
    readBody: nothing,
    claim: nothing,
    cancelClaim: nothing,
    lookUp: nothing,
    send: nothing,
    cancelSend: nothing,
    discard: nothing,
    sleep: nothing,
    cancelSleep: nothing,
    rearm: () => world.rearm(),
    finish: told,
  };
  const ticket = new Ticket('up', client, 1, refs, (admission, now) => drive.settle(admission, now));
  ticket.isSentElsewhere = true;
  const drive: Drive = new Drive({
    script: check(world.now + wait),
    gate: world.gate,
    ticket,
    effects,
    clock: { now: () => world.now },
    listen: (event) => world.events.push(event),
  });
  drive.start();
  return drive;
}

/** @param sentAt when it had been let pass */
export function report(
  world: World,
  status: number,
  sentAt: Millis,
  { client = 'client', refs = [SHARED], retryAfter }: Asked & { readonly retryAfter?: Millis } = {},
): void {
  const ticket = new Ticket('up', client, 1, refs, () => undefined);
  world.gate.report(ticket, response(status, { retryAfter }, world.now - sentAt), sentAt, world.now);
  world.rearm();
}

export interface Loop {
  /** Requests a second that want to be sent, evenly, by as many clients in turn as are named. */
  readonly demand: number;
  readonly clients?: readonly string[];
  readonly limit: LimitModel;
  readonly latency: Millis;
  /** Whether what came of it is reported. */
  readonly reports: (status: number, world: World) => boolean;
  readonly end: Millis;
}

export interface Came {
  readonly at: Millis;
  readonly status: number;
}

/** Runs until `end`. Returns what reached the upstream, in order. */
export function runLoop(world: World, { demand, clients = ['client'], limit, latency, reports, end }: Loop): Came[] {
  const came: Came[] = [];
  const next = (n: number): void => {
    const client = clients[n % clients.length]!;
    ask(world, { client }, (verdict) => {
      if (verdict.kind !== 'forward') return;
      const sentAt = world.now;
      const status = limit.arrive(sentAt + latency / 2).accepted ? 200 : 429;
      came.push({ at: sentAt, status });
      world.at(sentAt + latency, () => {
        if (reports(status, world)) report(world, status, sentAt, { client });
      });
    });
    const at = world.now + 1000 / demand;
    if (at < end) world.at(at, () => next(n + 1));
  };
  next(0);
  world.runUntil(end);
  return came;
}

/** Of this status, a second, from `since` to `end`. */
export function perSecond(came: readonly Came[], status: number, since: Millis, end: Millis): number {
  return (
    (1000 * came.filter((each) => each.status === status && each.at >= since && each.at < end).length) / (end - since)
  );
}
