import type { Clock, Millis } from '../../../src/core/scalars.ts';
import type { RedisKeyConnection } from '../../../src/sharing/redis/keys/redis-key-commands.ts';
import { RedisRequests } from '../../../src/sharing/redis/redis-requests.ts';

/** A connection without a backend, for the parts that use Redis directly. @returns it, and the problems it has had */
export function testConnection(
  client: RedisKeyConnection['client'],
  { channel, timeout, clock = performance }: { channel: string; timeout: Millis; clock?: Clock },
): { readonly connection: RedisKeyConnection; readonly problems: unknown[] } {
  const problems: unknown[] = [];
  const onProblem = (error: unknown): void => void problems.push(error);
  const isConnected = (): boolean => client.status === 'ready';
  const ignored = { onRequest: () => undefined, onLateResponse: () => undefined, onSilent: () => undefined };
  const requests = new RedisRequests({ timeout, clock, isConnected, onProblem, ...ignored });
  return { connection: { client, requests, isConnected, channel, onProblem, problem: () => 'some cause' }, problems };
}
