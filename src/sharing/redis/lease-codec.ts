/**
 * Calls, answers and news as the scripts read and write them: little-endian doubles, NaN for what is undefined. The
 * places of the numbers are those of scripts/lua/host.lua.
 */
import { CUT_CAUSES, LIMIT_STATES } from '../../core/events/proxy-events.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import { SOURCE_NUMBERS } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Answer, Call, News, PoolTerms } from '../replicas/replica-protocol.ts';

const DOUBLE = 8;
const CALL_NUMBERS = 11;
const TERMS_NUMBERS = 20 + 6 + SOURCE_NUMBERS;
/** Terms and when. */
const NEWS_NUMBERS = TERMS_NUMBERS + 1;
const ANSWER_NUMBERS = NEWS_NUMBERS + 5;
const CUT_NUMBERS = 3;

/** All of a call but its strings, which are arguments of their own. */
export function packCall(call: Call): Buffer {
  const { known, happenings } = call;
  const packed = Buffer.allocUnsafe(DOUBLE * (CALL_NUMBERS + happenings.length));
  const view = viewOf(packed);
  view.setFloat64(0, call.now, true);
  view.setFloat64(DOUBLE, call.lent, true);
  view.setFloat64(2 * DOUBLE, call.inFlight, true);
  view.setFloat64(3 * DOUBLE, call.want, true);
  view.setFloat64(4 * DOUBLE, call.weight, true);
  view.setFloat64(5 * DOUBLE, call.roundTrip, true);
  view.setFloat64(6 * DOUBLE, known.epoch, true);
  view.setFloat64(7 * DOUBLE, known.since, true);
  view.setFloat64(8 * DOUBLE, known.rate, true);
  view.setFloat64(9 * DOUBLE, known.ceiling, true);
  view.setFloat64(10 * DOUBLE, call.chance, true);
  let at = DOUBLE * CALL_NUMBERS;
  for (const number of happenings) {
    view.setFloat64(at, number, true);
    at += DOUBLE;
  }
  return packed;
}

export function packSettings(settings: RateSettings): Buffer {
  const { initialRate, maxRate, minRate, cooldown, maxProbeDelay, isOfOne = false } = settings;
  const packed = Buffer.allocUnsafe(6 * DOUBLE);
  const view = viewOf(packed);
  view.setFloat64(0, initialRate ?? Number.NaN, true);
  view.setFloat64(DOUBLE, maxRate, true);
  view.setFloat64(2 * DOUBLE, minRate, true);
  view.setFloat64(3 * DOUBLE, cooldown, true);
  view.setFloat64(4 * DOUBLE, maxProbeDelay ?? Number.NaN, true);
  view.setFloat64(5 * DOUBLE, isOfOne ? 1 : 0, true);
  return packed;
}

/** @throws RangeError for what no script of this version has written */
export function readAnswer(packed: Buffer): Answer {
  const numbers = viewOf(packed);
  const at = (place: number): number => numbers.getFloat64(DOUBLE * place, true);
  const list = (from: number, count: number): number[] => {
    const read: number[] = [];
    for (let i = 0; i < count; i += 1) read.push(at(from + i));
    return read;
  };
  const slots = at(TERMS_NUMBERS + 3);
  const waits = at(TERMS_NUMBERS + 4);
  const cuts: Answer['cuts'][number][] = [];
  for (let i = 0; i < at(TERMS_NUMBERS + 5); i += 1) {
    const from = ANSWER_NUMBERS + slots + waits + CUT_NUMBERS * i;
    cuts.push({ cause: pick(CUT_CAUSES, at(from)), from: at(from + 1), to: at(from + 2) });
  }
  return {
    now: at(TERMS_NUMBERS),
    terms: readTerms(numbers, 0),
    slots: list(ANSWER_NUMBERS, slots),
    againAt: at(TERMS_NUMBERS + 1),
    waitsWith: list(ANSWER_NUMBERS + slots, waits),
    cuts,
    isNews: at(TERMS_NUMBERS + 2) === 1,
  };
}

/** @returns undefined for what is no news, or none of this version: anybody may publish */
export function readNews(message: Buffer): News | undefined {
  const from = message.length - DOUBLE * NEWS_NUMBERS;
  if (from < 1 || message[from - 1] !== 0) return undefined;
  const view = viewOf(message);
  try {
    return {
      name: message.toString('utf8', 0, from - 1),
      terms: readTerms(view, from),
      now: view.getFloat64(from + DOUBLE * TERMS_NUMBERS, true),
    };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function readTerms(numbers: DataView, from: number): PoolTerms {
  const at = (place: number): number => numbers.getFloat64(from + DOUBLE * place, true);
  const known = (place: number): number | undefined => (Number.isNaN(at(place)) ? undefined : at(place));
  return {
    epoch: at(0),
    phase: pick(LIMIT_STATES, at(1)),
    isFree: at(2) === 1,
    rate: at(3),
    ceiling: at(4),
    places: known(5),
    blockedUntil: known(6),
    expectedAt: at(7),
    isProbeOut: at(8) === 1,
    quotaLeft: known(9),
    quotaOwner: at(15) === 0 ? undefined : readOwner(at(15), known(16), known(17), at(18)),
    isQuotaApart: at(19) === 1,
    block: at(20) === 0 ? undefined : readBlock(at, 20),
    others: at(10),
    validFor: at(11),
    inFlight: at(12),
    sends: at(13),
    holders: at(14),
  };
}

/** @param from where its kind stands: 1 and the number of its cause, and that of all causes more where others pass */
function readBlock(at: (place: number) => number, from: number): Block {
  const kind = at(from) - 1;
  const scope: number[] = [];
  for (let i = 0; i < SOURCE_NUMBERS; i += 1) scope.push(at(from + 6 + i));
  return {
    cause: pick(BLOCK_CAUSES, kind % BLOCK_CAUSES.length),
    isPartial: kind >= BLOCK_CAUSES.length,
    since: at(from + 1),
    probeAt: at(from + 2),
    expectedAt: at(from + 3),
    asked: at(from + 4),
    askedUntil: at(from + 5),
    scope,
  };
}

/** @param kind 1, and 1 more where it is common, and 2 more where it is spent */
function readOwner(
  kind: number,
  credential: number | undefined,
  client: number | undefined,
  until: Millis,
): QuotaOwner {
  return { credential, client, until, isCommon: kind % 2 === 0, isSpent: kind > 2 };
}

function pick<const Word extends string>(words: readonly Word[], index: number): Word {
  const word = words[index];
  if (word === undefined) throw new RangeError(`no word by the number ${index}: ${words.join(', ')}`);
  return word;
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
