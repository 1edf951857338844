/** Authorization checks in virtual time: the caller sends admitted requests to a limited upstream and reports outcomes. */
import { runAuthorizationCheck } from '../../../src/core/exchange/external-authorization.ts';
import type { ExchangeEffects } from '../../../src/core/exchange/effects.ts';
import { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import type { LimitModel } from '../../../src/simulator/limit-models/limit-model.ts';
import { response, SHARED } from './policy-builders.ts';
import type { World } from './world.ts';

export interface SimulatedCheckOptions {
  readonly client?: string;
  readonly refs?: readonly LimitRef[];
  /** Maximum wait; one second by default. */
  readonly wait?: Millis;
}

/** Runs a check now and calls back once with its result. */
export function requestCheck(
  world: World,
  { client = 'client', refs = [SHARED], wait = 1000 }: SimulatedCheckOptions,
  onVerdict: (verdict: ExchangeVerdict) => void,
): ExchangeDriver {
  const nothing = (): never => {
    throw new Error('a check does nothing but ask');
  };
  const effects: ExchangeEffects = {
    readBody: nothing,
    claim: nothing,
    stopClaim: nothing,
    join: nothing,
    leave: nothing,
    lookUpKey: nothing,
    send: nothing,
    cancelSend: nothing,
    discardResponse: nothing,
    sleep: nothing,
    cancelSleep: nothing,
    rearmGateTimer: () => world.rearm(),
    finish: onVerdict,
  };
  const ticket = new Ticket('up', client, 1, refs, (admission, now) => drive.onAdmission(admission, now), {
    isSentExternally: true,
    mode: world.mode,
  });
  const drive: ExchangeDriver = new ExchangeDriver({
    generator: runAuthorizationCheck(world.now + wait),
    gate: world.gate,
    ticket,
    effects,
    clock: { now: () => world.now },
    listen: (event) => world.events.push(event),
  });
  drive.start();
  return drive;
}

/** @param sentAt when the check was admitted */
export function reportOutcome(
  world: World,
  status: number,
  sentAt: Millis,
  { client = 'client', refs = [SHARED], retryAfter }: SimulatedCheckOptions & { readonly retryAfter?: Millis } = {},
): void {
  const ticket = new Ticket('up', client, 1, refs, () => undefined);
  world.gate.onExternalOutcome(
    ticket,
    response(status, { retryAfterMs: retryAfter }, world.now - sentAt),
    sentAt,
    world.now,
  );
  world.rearm();
}

export interface CheckLoopOptions {
  /** Requests a second, evenly spaced, by the named clients in turn. */
  readonly demand: number;
  readonly clients?: readonly string[];
  readonly limit: LimitModel;
  readonly latency: Millis;
  /** Whether an outcome is reported. */
  readonly reports: (status: number, world: World) => boolean;
  readonly end: Millis;
}

export interface CheckResult {
  readonly at: Millis;
  readonly status: number;
}

/** Runs until `end`. Returns the requests that reached the upstream, in order. */
export function runCheckLoop(
  world: World,
  { demand, clients = ['client'], limit, latency, reports, end }: CheckLoopOptions,
): CheckResult[] {
  const came: CheckResult[] = [];
  const next = (n: number): void => {
    const client = clients[n % clients.length]!;
    requestCheck(world, { client }, (verdict) => {
      if (verdict.kind !== 'forward') return;
      const sentAt = world.now;
      const status = limit.tryAcquire(sentAt + latency / 2).accepted ? 200 : 429;
      came.push({ at: sentAt, status });
      world.at(sentAt + latency, () => {
        if (reports(status, world)) reportOutcome(world, status, sentAt, { client });
      });
    });
    const at = world.now + 1000 / demand;
    if (at < end) world.at(at, () => next(n + 1));
  };
  next(0);
  world.runUntil(end);
  return came;
}

/** Results with this status a second, from `since` to `end`. */
export function ratePerSecond(came: readonly CheckResult[], status: number, since: Millis, end: Millis): number {
  return (
    (1000 * came.filter((each) => each.status === status && each.at >= since && each.at < end).length) / (end - since)
  );
}
