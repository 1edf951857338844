import type { LocalMeter } from '../../core/limits/meter.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import { shiftTimes } from '../protocol/usage-entries.ts';
import type { CutTold } from '../protocol/authoritative-limit.ts';
import { KeptLimit } from '../protocol/authoritative-limit.ts';
import { isSameBlock, termsOf } from '../protocol/limit-terms.ts';
import { Census } from './active-weight.ts';
import { InFlightHistory } from './in-flight-history.ts';
import { PoolAccount } from './replica-account.ts';
import type { Shelf } from './account-store.ts';
import type { Answer, Call, PoolTerms } from './replica-protocol.ts';

/** Tokens are lent for so long ahead, and may be used for so long after their time. */
const HORIZON: Millis = 100;
const VALID_FOR: Millis = 100;
/** For so much longer, in horizons, to who is behind: it need not wait for what others have ahead of time. */
const BEHIND = 2;
/** Who cannot have more yet asks again after half a horizon; and with very many, so that all together ask a thousand times a second. */
const ASK_EACH: Millis = 1;
/** How long an answer takes, as a rule. */
const NOTICE: Millis = 2;
/** Who has something of a limit and is not heard of for so long is gone. */
const SILENCE: Millis = 3000;
const MOST_SILENT = 4;
/** A rate without bound counts as this. */
const FASTEST: PerSecond = 1e6;
/** Spans of the census, in horizons or pauses: who waits calls at least once in each. */
const SPAN = 3;
/** Tokens of which it may be told that they were not spent: at a low rate each is worth seconds. */
const REMEMBERED = 4;
/** Who sends or waits calls more often: while nobody did, either nothing was sent, or by replicas that go on alone. */
const UNSEEN: Millis = 500;
/** A clock that is off by more was set. */
const CLOCK_SET: Millis = 1000;
/** Tokens that are due so soon, in horizons, and are left by those whose turn it is, go to whoever asks. */
const SPARE = 0.5;
/** What has been sent is told so late; where they are very many, later. */
const TOLD_LATE: Millis = 100;
const TOLD_LATE_EACH: Millis = 0.2;
const LATEST_TOLD: Millis = 200;
/** By then all have told. */
const ALL_TOLD = 1.2;
/** Of more accepted ones at a time it is not asked. */
const MOST_UNJUDGED = 64;
/** With places in flight, this much more than a share may be had of them for a while: it comes back when it ends. */
const PLACES_AHEAD = 4;
const SPARED_FOR: Millis = 7;
/** Who waits for the end of what others have in flight looks again so soon. */
const LOOK_AGAIN: Millis = 10;
const LONGEST_LOOK: Millis = 250;

/**
 * One limit of a pool. Who calls tells what happened, and takes as many tokens as are its turn: the pool calls nobody, and
 * looks at no other account but those of a few that are gone, so that a call costs the same however many call.
 *
 * Whose turn it is goes by virtual time (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996): a token moves the
 * limit's on by 1 ÷ the weight of all who wait, and that of who took it by 1 ÷ its own. Nobody is further ahead than its
 * share of one horizon.
 */
export class PooledLimit {
  readonly #kept: KeptLimit<string>;
  readonly #census = new Census();
  readonly #history = new InFlightHistory();
  /** Of which it is not known yet among how many they were sent. */
  readonly #unjudged: Unjudged[] = [];
  #virtual = 0;
  #firstCutAt = Number.NEGATIVE_INFINITY;
  /** Since when a place in flight has been left for somebody else; undefined where none is. */
  #sparedAt: Millis | undefined;
  /** The time of the last call, and what a clock that was set back is behind. */
  #last = Number.NEGATIVE_INFINITY;
  #shift = 0;

  constructor(meter: LocalMeter) {
    this.#kept = new KeptLimit(meter, NOTICE, REMEMBERED);
  }

  /** The pool's time never goes back. @param time the store's own, which may be set */
  now(time: Millis): Millis {
    if (time + this.#shift < this.#last - CLOCK_SET) this.#shift = this.#last - time;
    const now = Math.max(time + this.#shift, this.#last);
    if (now - this.#last > UNSEEN) this.#kept.meter.pass(now);
    this.#last = now;
    return now;
  }

  /** @param now as `now` gave it @param isNew nothing was kept of this limit */
  serve(call: Call, shelf: Shelf, now: Millis, isNew: boolean): Answer {
    const { meter } = this.#kept;
    const before = this.#terms(undefined, 0, 0, now);
    this.#buryGone(shelf, now);
    const kept = shelf.readAccount(call.holder);
    const account = PoolAccount.read(call.holder, kept ?? []);
    const holders = shelf.countAccounts() + (kept === undefined ? 1 : 0);
    const late = Math.min(LATEST_TOLD, Math.max(TOLD_LATE, TOLD_LATE_EACH * holders));
    // Of a clock that was set between two calls, all times are moved; and the first time, when the caller knows no better.
    const behind = Math.abs(now - call.now) > CLOCK_SET ? now - call.now : 0;
    account.epoch = call.known.epoch;
    account.knownSince = call.known.since + behind;
    this.#goOn(call, now, isNew, kept === undefined);
    const isWanted = call.want > 0 || this.#census.weight > 0;
    this.#kept.advance(now, isWanted, late);
    const happenings = behind === 0 ? call.happenings : shiftTimes(call.happenings, behind);
    const cuts = this.#kept.hear(happenings, account, now);
    this.#recount(account, call, now);
    if (cuts.some(({ cause }) => cause === 'first')) this.#firstCutAt = now;
    if (now - this.#firstCutAt < ALL_TOLD * late) meter.reviseFirst();
    this.#learnAmong(account, cuts, { now, late });
    this.#kept.advance(now, isWanted, late);

    const pause = Math.max(HORIZON / 2, ASK_EACH * holders);
    const weight = call.weight > 0 ? call.weight : 1;
    const span = SPAN * Math.max(HORIZON, pause);
    this.#census.note(account, call.want > 0 ? weight : 0, now, span);
    const slots: Millis[] = [];
    const isLent = call.want > 0 && !this.#isFree(now);
    const againAt = isLent ? this.#lend(account, call, slots, { now, pause }) : Number.POSITIVE_INFINITY;
    // Who has all it wants waits for nothing: the others' turns come as fast as there are of them.
    if (slots.length >= call.want) this.#census.note(account, 0, now, span);
    const waitsWith: number[] = [];
    for (const client of call.clients) waitsWith.push(shelf.noteWaiting(client, call.holder, now));
    shelf.keepAccount(call.holder, account.write(), now);
    const others = this.#census.othersThan(account);
    const terms = this.#terms(call.holder, others, holders, now);
    return { now, terms, slots, againAt, waitsWith, cuts, isNews: isNews(before, terms) };
  }

  #terms(holder: string | undefined, others: number, holders: number, now: Millis): PoolTerms {
    const { meter, epoch } = this.#kept;
    return {
      ...termsOf(meter, epoch, VALID_FOR, now),
      isProbeOut: this.#kept.isProbeOut(holder),
      others,
      inFlight: meter.inFlight,
      sends: meter.sends,
      holders,
    };
  }

  /** Goes on from what the caller knows, where that is more. */
  #goOn({ known }: Call, now: Millis, isNew: boolean, isNewcomer: boolean): void {
    const { meter } = this.#kept;
    // A newcomer that learned alone, and never heard of the others, had its own rate beside theirs.
    const isBeside = isNewcomer && known.since === Number.NEGATIVE_INFINITY && meter.phase !== 'blocked';
    const base = isNew ? 0 : isBeside ? meter.rate(now) : Number.POSITIVE_INFINITY;
    const rate = base + known.rate;
    if (known.epoch > 0 && known.rate > 0 && rate < Number.POSITIVE_INFINITY) {
      meter.resume(rate, Math.max(rate, Math.min(isNew ? known.ceiling : meter.ceiling, Number.MAX_VALUE)), now);
    }
    if (known.epoch > this.#kept.epoch) this.#kept.turnEpoch(now, known.epoch + 1);
  }

  /** Answers and calls get lost: what the caller has in hand and in flight, it knows best. */
  #recount(account: PoolAccount, { lent, inFlight }: Call, now: Millis): void {
    const { meter } = this.#kept;
    for (; account.lent > lent; account.lent -= 1) meter.giveBack();
    if (inFlight !== account.inFlight) {
      meter.recount(inFlight - account.inFlight);
      this.#history.note(now, inFlight - account.inFlight);
    }
    account.inFlight = inFlight;
  }

  /** Whether it is their number that is limited shows when it is known how many there were. */
  #learnAmong(
    { sentAt, endedAt, answered }: PoolAccount,
    cuts: readonly CutTold[],
    { now, late }: { readonly now: Millis; readonly late: Millis },
  ): void {
    for (const at of sentAt) this.#history.note(Math.min(at, now), 1);
    for (const at of endedAt) this.#history.note(Math.min(at, now), -1);
    for (const at of answered) {
      if (this.#unjudged.length < MOST_UNJUDGED) this.#unjudged.push({ sentAt: at, isRejected: false });
    }
    for (const cut of cuts) if (cut.cause !== 'errors') this.#unjudged.push({ sentAt: cut.sentAt, isRejected: true });
    let kept = 0;
    for (const each of this.#unjudged) {
      if (each.sentAt > now - ALL_TOLD * late) {
        this.#unjudged[kept] = each;
        kept += 1;
        continue;
      }
      const among = this.#history.at(each.sentAt, this.#kept.meter.inFlight);
      if (among !== undefined && this.#kept.meter.learnAmong(among, each.isRejected, now)) this.#kept.turnEpoch(now);
    }
    this.#unjudged.length = kept;
  }

  /** Lends what is the caller's turn. Returns when to ask again. */
  #lend(
    account: PoolAccount,
    call: Call,
    slots: Millis[],
    { now, pause }: { readonly now: Millis; readonly pause: Millis },
  ): Millis {
    const { meter } = this.#kept;
    const weight = account.counted;
    const rate = Math.min(meter.rate(now), FASTEST);
    const horizon = HORIZON + call.roundTrip;
    const all = Math.max(weight, this.#census.weight);
    const ahead =
      meter.places === undefined ? (rate * horizon) / 1000 / all : PLACES_AHEAD / weight + meter.places / all;
    // What is left of its turn takes as much less as it has more weight: others wait there now.
    const isAhead = account.tag > this.#virtual;
    if (isAhead) account.tag = this.#virtual + ((account.tag - this.#virtual) * account.weight) / weight;
    else account.tag = Math.max(account.tag, this.#virtual - ahead);
    account.weight = weight;
    for (let wanted = call.want; wanted > 0; wanted -= 1) {
      const delay = meter.delay(now);
      if (meter.phase === 'blocked' && delay > 0) return now + Math.min(delay, LONGEST_LOOK);
      if (delay === Number.POSITIVE_INFINITY) return now + this.#lookAgain(pause);
      const early = account.tag - ahead - this.#virtual;
      const until = (account.tag <= this.#virtual ? BEHIND : early > 0 ? SPARE : 1) * horizon;
      if (early > 0 && meter.places !== undefined && this.#isSpared(now)) return now + this.#lookAgain(pause);
      if (delay > until) {
        const turnIn = Math.min(LONGEST_LOOK, (1000 * early * all) / rate);
        return now + Math.max(pause, turnIn, delay - until);
      }
      if (early > 0) this.#virtual += early;
      const slot = now + delay;
      this.#kept.take(account.holder, slot, now);
      slots.push(slot);
      account.lent += 1;
      account.tag += 1 / weight;
      this.#virtual += 1 / all;
      this.#sparedAt = undefined;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** A place in flight that is free is left for whose turn it is, for long enough that they look. */
  #isSpared(now: Millis): boolean {
    this.#sparedAt ??= now;
    return now - this.#sparedAt < SPARED_FOR;
  }

  #lookAgain(pause: Millis): Millis {
    return Math.min(LONGEST_LOOK, (LOOK_AGAIN * pause) / HORIZON);
  }

  #isFree(now: Millis): boolean {
    return termsOf(this.#kept.meter, this.#kept.epoch, VALID_FOR, now).isFree;
  }

  #buryGone(shelf: Shelf, now: Millis): void {
    for (const holder of shelf.silentSince(now - SILENCE, MOST_SILENT)) {
      this.#kept.bury(PoolAccount.read(holder, shelf.readAccount(holder) ?? []));
      shelf.dropAccount(holder);
    }
  }
}

interface Unjudged {
  readonly sentAt: Millis;
  readonly isRejected: boolean;
}

/** Whether those who have asked for nothing have to hear of it. */
function isNews(before: PoolTerms, { epoch, phase, isFree, places, isQuotaApart, block }: PoolTerms): boolean {
  if (before.isQuotaApart !== isQuotaApart || !isSameBlock(before.block, block)) return true;
  return before.epoch !== epoch || before.phase !== phase || before.isFree !== isFree || before.places !== places;
}
