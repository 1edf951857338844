import type { Logger } from 'pino';
import type { Config } from '../schema/config-schema.ts';
import { originsOf } from '../schema/upstream-schema.ts';
import { descriptorLimit } from '../../http/overload/open-file-limit.ts';
import { heapLimit } from '../../http/overload/v8-heap.ts';
import { fitDescriptors } from '../../core/overload/descriptor-capacity.ts';
import type { Sizes } from '../../core/overload/heap-capacity.ts';
import { fitHeap, SIZES } from '../../core/overload/heap-capacity.ts';

/** Limits of single clients that may be remembered, where others are configured than at the start. */
export function compileClientLimits(config: Config): number {
  return fitHeap(wantedBy(config), heapLimit()).clientLimits;
}

/** What of the configuration the heap and the files that may be open have room for; told where that is less. */
export function compileSizes(config: Config, logger: Logger): Sizes {
  const { upstreams } = config;
  const wanted = wantedBy(config);
  const heap = heapLimit();
  const sizes = fitHeap(wanted, heap);
  const isLess = SIZES.some((kind) => sizes[kind] < wanted[kind]);
  if (isLess) {
    logger.info({ heapMiB: Math.floor(heap / 1024 ** 2), ...sizes }, 'the heap has room for less than is configured');
  }
  const openFiles = descriptorLimit();
  if (openFiles === undefined) return sizes;
  const upstream = Object.values(upstreams).reduce((sum, each) => sum + each.connections * originsOf(each).length, 0);
  const connections = fitDescriptors(sizes.connections, upstream, openFiles);
  if (connections < sizes.connections) {
    logger.info({ openFiles, connections }, 'fewer files may be open than are configured as connections');
  }
  return { ...sizes, connections };
}

function wantedBy({ limits, clients, upstreams }: Config): Sizes {
  const own = Object.values(upstreams).some(({ rateLimit, limits: nested }) =>
    [rateLimit, ...nested].some(({ scope }) => scope !== 'upstream'),
  );
  return {
    connections: limits.connections,
    requests: limits.requests,
    clients: clients.maxTracked,
    clientLimits: own ? clients.maxTracked : 1,
  };
}
