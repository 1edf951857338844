import type { Config } from '../../config/schema/config-schema.ts';
import { readClientTls } from '../../http/tls/client-tls.ts';
import type { RedisLocation } from '../../sharing/redis/redis-connection.ts';

export type RedisStateConfig = Extract<Config['state'], { store: 'redis' }>;

/**
 * Where Redis is, with the credentials of the configuration.
 * @throws an Error of node:fs that names the path, when a certificate cannot be read
 */
export function redisLocation({
  url,
  username,
  password,
  sentinelUsername,
  sentinelPassword,
  tls,
}: RedisStateConfig): RedisLocation {
  const { kind, nodes, db } = url;
  return {
    kind,
    nodes,
    db,
    name: kind === 'sentinel' ? url.name : undefined,
    username: username ?? url.username,
    password: password ?? url.password,
    sentinelUsername,
    sentinelPassword,
    tls: url.tls ? readClientTls(tls) : undefined,
  };
}
