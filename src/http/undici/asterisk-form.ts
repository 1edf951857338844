import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Client, Dispatcher } from 'undici';
import { ASTERISK } from '../request/request-target.ts';

/** undici publishes each request here when it is created, within `dispatch` and before anything is written. */
const REQUEST_CREATED_CHANNEL = 'undici:request:create';

/**
 * Sends `OPTIONS *`. undici 8.13.1 requires a path that starts with a slash (lib/core/request.js), so the request is created with
 * `/`, which is replaced before it is written.
 */
export function dispatchAsterisk(
  client: Client,
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
): void {
  const replacePath = (message: unknown): void => {
    if (typeof message !== 'object' || message === null || !('request' in message)) return;
    const { request } = message;
    if (typeof request === 'object' && request !== null) Reflect.set(request, 'path', ASTERISK);
  };
  subscribe(REQUEST_CREATED_CHANNEL, replacePath);
  try {
    client.dispatch({ ...options, path: '/' }, handler);
  } finally {
    unsubscribe(REQUEST_CREATED_CHANNEL, replacePath);
  }
}
