import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { ResponseHead } from '../response/response-head.ts';
import type { JoinedRead, ReadFlight } from './joined-read.ts';
import { judgeShareability, type SharedResponse } from './share-response.ts';

/** The responses to reads with this key were for one request: equal reads do not wait for each other for so long. */
const APART_FOR: Millis = 10_000;
/** Keys that are remembered so. */
const MAX_APART = 1000;

/** The reads with one key: at most one flight is sent, and at most one waits for it. */
interface Flights {
  sent: ReadFlight | undefined;
  open: ReadFlight | undefined;
}

/**
 * Reads that equal ones wait for, in this process. Reads that arrive before an equal one is sent join it. Those that arrive later wait
 * until it is answered, and are then sent as one. So a request never gets a response that the upstream began before it arrived: it
 * sees all writes that were answered before.
 */
export class InFlightReads {
  readonly #clock: Clock;
  readonly #flights = new Map<string, Flights>();
  readonly #apartUntil = new Map<string, Millis>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys with a read in flight, or with reads that wait. */
  get size(): number {
    return this.#flights.size;
  }

  /** @returns false if it is sent by itself: the responses are not shared */
  join(read: JoinedRead): boolean {
    const { key } = read;
    if ((this.#apartUntil.get(key) ?? 0) > this.#clock.now()) return false;
    const flights = this.#flights.get(key) ?? { sent: undefined, open: undefined };
    this.#flights.set(key, flights);
    if (flights.open !== undefined) {
      flights.open.followers.add(read);
      read.flight = flights.open;
      return true;
    }
    flights.open = { leader: read, followers: new Set() };
    read.flight = flights.open;
    if (flights.sent === undefined) read.onLead();
    return true;
  }

  /** The leader of a flight is sent: nobody joins it any more. */
  onSent({ key, flight }: JoinedRead): void {
    const flights = this.#flights.get(key);
    if (flights === undefined || flights.open !== flight) return;
    flights.open = undefined;
    flights.sent = flight;
  }

  /** It waits no longer, or its client has gone: another one leads the others. */
  leave(read: JoinedRead): void {
    const { key, flight } = read;
    if (flight === undefined || flight.followers.delete(read) || flight.leader !== read) return;
    const [next] = flight.followers;
    if (next === undefined) return this.#end(key, flight);
    flight.followers.delete(next);
    flight.leader = next;
    this.#reopen(key, flight);
  }

  /** It has waited for too long: equal reads do not wait either, for some time. */
  onTooSlow(read: JoinedRead): void {
    this.#keepApart(read.key);
    this.leave(read);
  }

  /** Whether others wait for the response with this head. If none do, or it is not for them, the flight ends. */
  isWanted(read: JoinedRead, head: ResponseHead, outcome: AttemptOutcome | undefined): boolean {
    const shareability = judgeShareability(head, outcome, read.isOfOneUser);
    if (shareability === 'never') this.#keepApart(read.key);
    if (shareability === 'yes' && read.flight !== undefined && read.flight.followers.size > 0) return true;
    // The next one finds out whether the upstream works again. All at once would be a burst.
    if (shareability === 'not_now') this.leave(read);
    else this.answer(read, undefined);
    return false;
  }

  /** Ends the flight of a leader. @param response undefined if the others have to be sent themselves */
  answer({ key, flight }: JoinedRead, response: SharedResponse | undefined): void {
    if (flight === undefined) return;
    const followers = [...flight.followers];
    flight.followers.clear();
    this.#end(key, flight);
    for (const follower of followers) follower.onAnswered(response);
  }

  /** The body turned out too long, too slow or incomplete. */
  onIncomplete(read: JoinedRead): void {
    this.#keepApart(read.key);
    this.answer(read, undefined);
  }

  /** The next leader of a flight begins, or waits for its turn with those that have come since. */
  #reopen(key: string, flight: ReadFlight): void {
    const flights = this.#flights.get(key);
    if (flights === undefined) return;
    if (flights.sent === flight) {
      flights.sent = undefined;
      if (flights.open === undefined) flights.open = flight;
      else moveAll(flight, flights.open);
    }
    if (flights.sent === undefined) flights.open?.leader.onLead();
  }

  #end(key: string, flight: ReadFlight): void {
    const flights = this.#flights.get(key);
    if (flights === undefined) return;
    if (flights.sent === flight) flights.sent = undefined;
    else if (flights.open === flight) flights.open = undefined;
    if (flights.sent !== undefined) return;
    if (flights.open === undefined) this.#flights.delete(key);
    else flights.open.leader.onLead();
  }

  #keepApart(key: string): void {
    this.#apartUntil.delete(key);
    this.#apartUntil.set(key, this.#clock.now() + APART_FOR);
    const [oldest] = this.#apartUntil.keys();
    if (this.#apartUntil.size > MAX_APART && oldest !== undefined) this.#apartUntil.delete(oldest);
  }
}

function moveAll(from: ReadFlight, to: ReadFlight): void {
  for (const read of [from.leader, ...from.followers]) {
    read.flight = to;
    to.followers.add(read);
  }
  from.followers.clear();
}
