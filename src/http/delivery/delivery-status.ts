import { isUtf8 } from 'node:buffer';
import type { Delivery, DeliveryAttempt, DeliveryResult } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { toHeaderPairs } from '../headers/raw-headers.ts';

/** Clients read the state of their deliveries below this path. */
export const DELIVERIES_PATH = '/.well-known/tidegate/deliveries/';

export function statusPathOf(id: string): string {
  return DELIVERIES_PATH + id;
}

type StateKind = Delivery['state']['kind'];

/** The states of a write as its client reads them. A `delivered` write is done, even if its response is a rejection. */
const WRITE_STATES = {
  waiting: 'waiting',
  sending: 'sending',
  delivered: 'done',
  dead: 'failed',
  canceled: 'canceled',
  unknown: 'unknown',
} as const satisfies Record<StateKind, string>;

/** The state of a delivery as its sender sees it. */
export interface DeliveryStatus {
  readonly id: string;
  readonly state: StateKind | (typeof WRITE_STATES)[StateKind];
  readonly acceptedAt: string;
  readonly attempts: number;
  /** While it waits. */
  readonly nextAttemptAt?: string;
  /** When it was delivered, dead or canceled. */
  readonly endedAt?: string;
  readonly lastAttempt?: AttemptStatus;
  /** Of a write that is done. */
  readonly response?: ResponseStatus;
}

interface AttemptStatus {
  readonly at: string;
  readonly status?: number;
  /** Why it did not acknowledge the delivery. */
  readonly reason?: string;
}

interface ResponseStatus {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Of `body`: text if it is UTF-8. */
  readonly encoding?: 'text' | 'base64';
  /** Absent: longer than what is kept. */
  readonly body?: string;
}

/** @param result of a write that is done; undefined if it cannot be read */
export function describeDelivery(
  { id, kind, state, acceptedAt, attempts, lastAttempt }: Delivery,
  result?: DeliveryResult,
): DeliveryStatus {
  return {
    id,
    state: kind === 'write' ? WRITE_STATES[state.kind] : state.kind,
    acceptedAt: toDate(acceptedAt),
    attempts,
    ...(state.kind === 'waiting' ? { nextAttemptAt: toDate(state.until) } : {}),
    ...('at' in state ? { endedAt: toDate(state.at) } : {}),
    ...(lastAttempt === undefined ? {} : { lastAttempt: describeAttempt(lastAttempt) }),
    ...(result === undefined ? {} : { response: describeResult(result) }),
  };
}

const SECOND: Millis = 1000;
/** The range of the `Retry-After`. */
const MIN_POLL_DELAY = SECOND;
const MAX_POLL_DELAY = 60 * SECOND;

/**
 * `Retry-After` for a client that polls the state of a write, in seconds; undefined once the write has ended. While an attempt is in
 * progress, half of the time that it has taken so far.
 */
export function pollAfterSeconds({ kind, state }: Delivery, now: Millis): number | undefined {
  if (kind !== 'write' || 'at' in state) return undefined;
  const delay = state.kind === 'waiting' ? state.until - now : (now - state.since) / 2;
  return Math.ceil(Math.min(MAX_POLL_DELAY, Math.max(MIN_POLL_DELAY, delay)) / SECOND);
}

function describeAttempt({ at, status, reason }: DeliveryAttempt): AttemptStatus {
  return {
    at: toDate(at),
    ...(status === undefined ? {} : { status }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function describeResult({ status, headers, body }: DeliveryResult): ResponseStatus {
  return { status, headers: toHeaderPairs(headers), ...(body === undefined ? {} : describeBody(body)) };
}

/** A body in a JSON document. */
export function describeBody(body: Buffer): { readonly encoding: 'text' | 'base64'; readonly body: string } {
  const encoding = isUtf8(body) ? 'text' : 'base64';
  return { encoding, body: body.toString(encoding === 'text' ? 'utf8' : 'base64') };
}

function toDate(time: Millis): string {
  return new Date(time).toISOString();
}
