import type { CallbackRoute } from '../../core/delivery/async-write-policy.ts';
import type { DueDelivery, NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import type { Route } from '../request/route.ts';
import { hasPrefix } from '../request/router.ts';
import type { DeliveryStatus } from './delivery-status.ts';

/** A client names the path to which the state of its write is sent. Like all such headers, it does not reach the upstream. */
const CALLBACK = 'tidegate-callback';

/** Unreserved characters, escapes and those that may stand in a path; no segment that moves to another path (RFC 3986 §3.3). */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$)|(?:%2e|\.){1,2}(?:\/|$))[\w.~!$&'()*+,;=:@%-]*)+$/i;
const MAX_LENGTH = 1024;

/** @returns the path; undefined if the client wants no callback, false if it may not have this one */
export function callbackPathOf(
  { headers }: Pick<DeliveryMessage, 'headers'>,
  route: CallbackRoute | undefined,
): string | undefined | false {
  const found = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === CALLBACK);
  const [path, ...others] = found;
  if (path === undefined) return undefined;
  if (route === undefined || others.length > 0 || path.length > MAX_LENGTH) return false;
  return PATH.test(path) && hasPrefix(path, route.path) ? path : false;
}

/**
 * The delivery that sends the state of a write to its client, with its schedule, signature and acknowledgement.
 * @param routes that deliver, by the configuration in effect
 * @returns undefined if the client does not want it, or the route is no longer configured
 */
export function makeCallback(
  { delivery, message }: DueDelivery,
  status: DeliveryStatus,
  { id, now, callback, routes }: CallbackParts,
): NewDelivery | undefined {
  const path = callbackPathOf(message, callback);
  const route = routes.find(({ name, delivery: policy }) => name === callback?.name && policy !== undefined);
  if (typeof path !== 'string' || route === undefined) return undefined;
  const body = Buffer.from(JSON.stringify(status));
  const headers = ['Host', 'tidegate', 'Content-Type', 'application/json', 'Content-Length', String(body.length)];
  return {
    ...{ id, kind: 'message', route: route.name, upstream: route.target.name, acceptedAt: now },
    ...{ owner: delivery.owner, eventId: undefined, orderKey: undefined },
    message: { method: 'POST', target: path, headers, body, peer: message.peer },
    duplicatesUntil: now,
  };
}

export interface CallbackParts {
  /** Of the new delivery. */
  readonly id: string;
  readonly now: Millis;
  readonly callback: CallbackRoute | undefined;
  readonly routes: readonly Route[];
}
