import type { DueDelivery, NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { findPathDefect } from '../request/request-target.ts';
import type { Route } from '../request/route.ts';
import { hasPrefix, type Router } from '../request/router.ts';
import { findDisguisedPath } from '../auth/disguised-path.ts';
import type { DeliveryStatus } from './delivery-status.ts';

/** A client names the path to which the state of its write is sent. Like all such headers, it does not reach the upstream. */
const CALLBACK = 'tidegate-callback';

/** Visible ASCII, without a query or fragment. */
const PATH = /^\/[!"$->@-~]*$/;
const MAX_LENGTH = 1024;

/**
 * The path for the callback of a write. The router has to match it to the route for callbacks, so that a client reaches no other route.
 * @param callback the name of that route
 * @returns undefined if the client named none, false if its path is rejected
 */
export function callbackPathOf(
  { headers }: Pick<DeliveryMessage, 'headers'>,
  callback: string | undefined,
  router: Router,
): string | undefined | false {
  const [path, ...others] = callbackHeaders(headers);
  if (path === undefined) return undefined;
  const route = findCallbackRoute(router.delivering, callback);
  if (route === undefined || others.length > 0 || path.length > MAX_LENGTH) return false;
  if (!PATH.test(path) || findPathDefect(path) !== undefined) return false;
  if (router.find('POST', route.host, path) !== route) return false;
  // A signature of the route says nothing here: Tidegate sends the callback, and a client has chosen its path.
  const unverified = { ...route, verify: undefined };
  return findDisguisedPath({ verb: 'POST', target: path }, unverified, router) === undefined ? path : false;
}

/**
 * The delivery that sends the state of a write to its client, with its schedule, signature and acknowledgement.
 * @returns undefined if the client named no path, or the route for callbacks in effect does not match it
 */
export function makeCallback(
  { delivery, message }: DueDelivery,
  status: DeliveryStatus,
  { id, now, callback, routes }: CallbackParts,
): NewDelivery | undefined {
  const [path] = callbackHeaders(message.headers);
  const route = findCallbackRoute(routes, callback);
  if (path === undefined || route === undefined || !hasPrefix(path, route.path)) return undefined;
  const body = Buffer.from(JSON.stringify(status));
  const headers = ['Host', 'tidegate', 'Content-Type', 'application/json', 'Content-Length', String(body.length)];
  return {
    ...{ id, kind: 'message', route: route.name, upstream: route.target.name, acceptedAt: now },
    ...{ owner: delivery.owner, sender: delivery.sender, eventId: undefined, orderKey: undefined },
    message: { method: 'POST', target: path, headers, body, peer: message.peer },
    duplicatesUntil: now,
  };
}

export interface CallbackParts {
  /** Of the new delivery. */
  readonly id: string;
  readonly now: Millis;
  /** The name of the route for callbacks. */
  readonly callback: string | undefined;
  /** That deliver, by the configuration in effect. */
  readonly routes: readonly Route[];
}

function callbackHeaders(headers: readonly string[]): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === CALLBACK);
}

function findCallbackRoute(routes: readonly Route[], callback: string | undefined): Route | undefined {
  return routes.find(({ name, delivery }) => name === callback && delivery !== undefined);
}
