/** Starts a Redis Cluster: masters without replicas that share the slots evenly. */
import { Cluster } from 'ioredis';
import { atEnd } from '../at-end.ts';
import type { RedisServer } from './redis-server.ts';
import { startRedis } from './redis-server.ts';
import { eventually } from '../proxy/tidegate.ts';

export interface RedisCluster {
  /** `redis+cluster://127.0.0.1:7000,127.0.0.1:7001` */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** Opens a cluster client, closed when the test ends. */
  readonly client: () => Cluster;
}

const SLOTS = 16_384;

/** Resolves when every node reports that all slots are served. */
export async function startCluster(count = 3): Promise<RedisCluster> {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-node-timeout': '2000',
    'cluster-announce-ip': '127.0.0.1',
  };
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ settings })));
  const clients = nodes.map((node) => node.client());
  const share = Math.ceil(SLOTS / count);
  for (const [index, client] of clients.entries()) {
    const own = Array.from({ length: Math.min(share, SLOTS - index * share) }, (_, slot) => index * share + slot);
    await client.cluster('ADDSLOTS', ...own);
    await client.cluster('SET-CONFIG-EPOCH', index + 1);
  }
  for (const node of nodes.slice(1)) await clients[0]?.cluster('MEET', '127.0.0.1', node.port);
  for (const client of clients) {
    await eventually(
      () => client.cluster('INFO'),
      (info) => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}\r\n`),
    );
    client.disconnect();
  }
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    client: () => {
      const cluster = new Cluster(
        nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
        { clusterRetryStrategy: () => 20 },
      );
      cluster.on('error', () => undefined);
      atEnd(() => cluster.disconnect());
      return cluster;
    },
  };
}
