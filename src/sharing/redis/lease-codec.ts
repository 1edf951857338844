/**
 * Requests, responses and broadcasts in the format of the Lua script: little-endian doubles, NaN for undefined. The places of the
 * numbers are those in scripts/lua/host.lua.
 */
import { CUT_CAUSES, LIMIT_STATES } from '../../core/limits/limit-state.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import { ATTRIBUTE_COUNT } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/scalars.ts';
import type { LeaseResponse, LeaseRequest, TermsBroadcast, ReplicaTerms } from '../replicas/replica-protocol.ts';

const DOUBLE = 8;
const REQUEST_NUMBERS = 13;
const TERMS_NUMBERS = 21 + 6 + ATTRIBUTE_COUNT;
/** The terms, and the time. */
const BROADCAST_NUMBERS = TERMS_NUMBERS + 1;
const RESPONSE_NUMBERS = BROADCAST_NUMBERS + 7;
const DECREASE_NUMBERS = 3;

/** A request without its strings, which are separate arguments. */
export function encodeRequest(request: LeaseRequest): Buffer {
  const { known, usage } = request;
  const packed = Buffer.allocUnsafe(DOUBLE * (REQUEST_NUMBERS + usage.length));
  const view = dataView(packed);
  view.setFloat64(0, request.now, true);
  view.setFloat64(DOUBLE, request.leasedTokens, true);
  view.setFloat64(2 * DOUBLE, request.inFlight, true);
  view.setFloat64(3 * DOUBLE, request.want, true);
  view.setFloat64(4 * DOUBLE, request.weight, true);
  view.setFloat64(5 * DOUBLE, request.roundTrip, true);
  view.setFloat64(6 * DOUBLE, known.epoch, true);
  view.setFloat64(7 * DOUBLE, known.since, true);
  view.setFloat64(8 * DOUBLE, known.rate, true);
  view.setFloat64(9 * DOUBLE, known.ceiling, true);
  view.setFloat64(10 * DOUBLE, request.random, true);
  view.setFloat64(11 * DOUBLE, request.waitingGroups.length, true);
  view.setFloat64(12 * DOUBLE, request.unanswered, true);
  let at = DOUBLE * REQUEST_NUMBERS;
  for (const number of usage) {
    view.setFloat64(at, number, true);
    at += DOUBLE;
  }
  return packed;
}

/** @param isKeyed requests decide how many such limits there are: see `limitRetention` */
export function encodeSettings(settings: RateSettings, isKeyed: boolean): Buffer {
  const { initialRate, maxRate, minRate, cooldown, maxProbeDelay } = settings;
  const { isPerClient = false, learnsFromLatency = false } = settings;
  const packed = Buffer.allocUnsafe(8 * DOUBLE);
  const view = dataView(packed);
  view.setFloat64(0, initialRate ?? Number.NaN, true);
  view.setFloat64(DOUBLE, maxRate, true);
  view.setFloat64(2 * DOUBLE, minRate, true);
  view.setFloat64(3 * DOUBLE, cooldown, true);
  view.setFloat64(4 * DOUBLE, maxProbeDelay ?? Number.NaN, true);
  view.setFloat64(5 * DOUBLE, isPerClient ? 1 : 0, true);
  view.setFloat64(6 * DOUBLE, isKeyed ? 1 : 0, true);
  view.setFloat64(7 * DOUBLE, learnsFromLatency ? 1 : 0, true);
  return packed;
}

/** @throws RangeError for what no script of this version writes */
export function decodeResponse(packed: Buffer): LeaseResponse {
  const numbers = dataView(packed);
  const at = (place: number): number => numbers.getFloat64(DOUBLE * place, true);
  const list = (from: number, count: number): number[] => {
    const read: number[] = [];
    for (let i = 0; i < count; i += 1) read.push(at(from + i));
    return read;
  };
  const slots = at(TERMS_NUMBERS + 3);
  const waiting = at(TERMS_NUMBERS + 4);
  const returning = at(TERMS_NUMBERS + 5);
  const decreases: LeaseResponse['decreases'][number][] = [];
  for (let i = 0; i < at(TERMS_NUMBERS + 6); i += 1) {
    const from = RESPONSE_NUMBERS + slots + waiting + returning + DECREASE_NUMBERS * i;
    decreases.push({ cause: wordAt(CUT_CAUSES, at(from)), from: at(from + 1), to: at(from + 2) });
  }
  return {
    now: at(TERMS_NUMBERS),
    terms: decodeTerms(numbers, 0, at(TERMS_NUMBERS + 7)),
    slots: list(RESPONSE_NUMBERS, slots),
    askAgainAt: at(TERMS_NUMBERS + 1),
    waitingReplicas: list(RESPONSE_NUMBERS + slots, waiting),
    returningReplicas: list(RESPONSE_NUMBERS + slots + waiting, returning),
    decreases,
    shouldBroadcast: at(TERMS_NUMBERS + 2) === 1,
  };
}

/** @returns undefined for a message of another format or version: other programs may publish too */
export function decodeBroadcast(message: Buffer): TermsBroadcast | undefined {
  const from = message.length - DOUBLE * BROADCAST_NUMBERS;
  if (from < 1 || message[from - 1] !== 0) return undefined;
  const view = dataView(message);
  try {
    return {
      limitId: message.toString('utf8', 0, from - 1),
      terms: decodeTerms(view, from, 0),
      now: view.getFloat64(from + DOUBLE * TERMS_NUMBERS, true),
    };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Versions with the same layout send each other broadcasts, so the size and the meaning of these numbers stay the same. Another bit of
 * number 8 is ignored by versions that do not know it.
 * @param otherUnanswered only a response has it, which the caller's own version writes
 */
function decodeTerms(numbers: DataView, from: number, otherUnanswered: number): ReplicaTerms {
  const at = (place: number): number => numbers.getFloat64(from + DOUBLE * place, true);
  const known = (place: number): number | undefined => (Number.isNaN(at(place)) ? undefined : at(place));
  return {
    epoch: at(0),
    phase: wordAt(LIMIT_STATES, at(1)),
    isUnlimited: at(2) === 1,
    rate: at(3),
    ceiling: at(4),
    concurrencyLimit: known(5),
    blockedUntil: known(6),
    expectedAt: at(7),
    isProbeOut: (at(8) & 1) !== 0,
    awaitsPlace: (at(8) & 2) !== 0,
    countsResponses: (at(8) & 4) !== 0,
    limitsUnanswered: (at(8) & 8) !== 0,
    isLatencyTest: (at(8) & 16) !== 0,
    quotaLeft: known(9),
    quotaOwner: at(15) === 0 ? undefined : decodeQuotaOwner(at(15), known(16), known(17), at(18)),
    isQuotaPerRequester: at(19) === 1,
    otherDemandWeight: at(20),
    block: at(21) === 0 ? undefined : decodeBlock(at, 21),
    otherWeight: at(10),
    otherUnanswered,
    validFor: at(11),
    inFlight: at(12),
    sendCount: at(13),
    replicas: at(14),
  };
}

/** @param from the position of its kind: 1 + the number of its cause, + the number of causes for a partial block */
function decodeBlock(at: (place: number) => number, from: number): BlockStatus {
  const kind = at(from) - 1;
  const scope: number[] = [];
  for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) scope.push(at(from + 6 + i));
  return {
    cause: wordAt(BLOCK_CAUSES, kind % BLOCK_CAUSES.length),
    isPartial: kind >= BLOCK_CAUSES.length,
    since: at(from + 1),
    probeAt: at(from + 2),
    expectedAt: at(from + 3),
    heldClient: at(from + 4),
    heldClientUntil: at(from + 5),
    scope,
  };
}

/** @param kind 1, + 1 if it is common, + 2 where it is spent */
function decodeQuotaOwner(
  kind: number,
  credential: number | undefined,
  client: number | undefined,
  until: Millis,
): QuotaOwner {
  return { credential, client, until, isCommon: kind % 2 === 0, isSpent: kind > 2 };
}

function wordAt<const Word extends string>(words: readonly Word[], index: number): Word {
  const word = words[index];
  if (word === undefined) throw new RangeError(`no word has the number ${index}: ${words.join(', ')}`);
  return word;
}

function dataView({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
