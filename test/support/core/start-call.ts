import type { AdmissionCallback } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeEffects } from '../../../src/core/exchange/effects.ts';
import { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import { runExchange } from '../../../src/core/exchange/polling-exchange.ts';
import type { Call, CallRecord, CallWorld, ScheduledCallback, Send } from './call-record.ts';
import { SHARED, failure, requestFacts, routePolicy } from './policy-builders.ts';

class CallTicket extends Ticket {
  readonly #call: Call;

  constructor(call: Call, ...parts: ConstructorParameters<typeof Ticket>) {
    super(...parts);
    this.#call = call;
  }

  override get className(): string | undefined {
    return this.#call.className;
  }

  override get isClientProven(): boolean {
    return this.#call.isProven === true;
  }

  protected override path(): string | undefined {
    return this.#call.path;
  }
}

/** Starts an exchange in this world, now. */
export function startCall(world: CallWorld, call: Call): CallRecord {
  const sends: Send[] = [];
  const effectNames: string[] = [];
  let timer: ScheduledCallback | undefined;
  let reply: ScheduledCallback | undefined;
  const cancel = (due: ScheduledCallback | undefined): void => {
    if (due !== undefined) world.cancel(due);
  };
  const effects: ExchangeEffects = {
    readBody: () => {
      effectNames.push('body');
      if (call.upload === undefined) driver.onBodyRead(call.replayable ?? true);
      else world.at(world.now + call.upload, () => driver.onBodyRead(call.replayable ?? true));
    },
    claim: () => {
      effectNames.push('claim');
      driver.onClaimed(undefined);
    },
    stopClaim: () => effectNames.push('stopClaim'),
    join: () => driver.onJoined(undefined, false),
    leave: () => undefined,
    lookUpKey: () => driver.onKeyKnown(undefined),
    send: ({ attempt, timeout }) => {
      effectNames.push('send');
      const send = { client: ticket.client, at: world.now, attempt, timeout };
      sends.push(send);
      const replyFromUpstream = world.respond(send);
      const settle = (outcome: AttemptOutcome) => (): void => {
        cancel(timer);
        cancel(reply);
        record.status = outcome.kind === 'response' ? outcome.status : undefined;
        driver.onOutcome(outcome);
      };
      timer = world.at(world.now + timeout, settle(failure('timeout', true, timeout)));
      if (replyFromUpstream !== 'silence') {
        reply = world.at(
          world.now + replyFromUpstream.after,
          settle({ ...replyFromUpstream.outcome, took: replyFromUpstream.after }),
        );
      }
    },
    cancelSend: () => {
      effectNames.push('cancelSend');
      cancel(timer);
      cancel(reply);
      return true;
    },
    discardResponse: () => {
      effectNames.push('discard');
    },
    sleep: (ms) => {
      effectNames.push(`sleep ${ms}`);
      timer = world.at(world.now + ms, () => driver.onWake());
    },
    cancelSleep: () => {
      effectNames.push('cancelSleep');
      cancel(timer);
    },
    rearmGateTimer: () => world.rearm(),
    finish: (verdict) => {
      effectNames.push(verdict.kind);
      record.verdict = verdict;
      record.endedAt = world.now;
      if (verdict.kind === 'forward') world.at(world.now + (call.download ?? 0), () => driver.onResponseEnd());
      call.onVerdict?.(record);
    },
  };
  const onSettled: AdmissionCallback = (admission, now) => driver.onAdmission(admission, now);
  const { client = 'client', weight = 1, refs = [SHARED], addressGroup } = call;
  const options = { arrivedAt: world.now, addressGroup, mode: call.policy?.mode ?? world.mode };
  const ticket = new CallTicket(call, 'up', client, weight, refs, onSettled, options);
  const driver = new ExchangeDriver({
    generator: runExchange(
      requestFacts(call.facts),
      routePolicy({ mode: world.mode, ...call.policy }),
      world.random,
      world.now,
    ),
    gate: world.gate,
    ticket,
    effects,
    clock: { now: () => world.now },
    listen: (event) => world.events.push(event),
    pollWait: call.pollWait,
  });
  const record: CallRecord = {
    call,
    driver,
    startedAt: world.now,
    sends,
    effects: effectNames,
    verdict: undefined,
    endedAt: Number.NaN,
    status: undefined,
  };
  driver.start();
  return record;
}
