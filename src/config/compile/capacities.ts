import type { Logger } from 'pino';
import type { Config } from '../schema/config-schema.ts';
import { DEFAULT_CONNECTIONS } from '../schema/config-schema.ts';
import { limitScopeOf, upstreamOrigins } from '../schema/upstream-schema.ts';
import { openFileLimit } from '../../http/overload/open-file-limit.ts';
import { oldSpaceLimit } from '../../http/overload/v8-heap.ts';
import { capByDescriptors } from '../../core/overload/descriptor-capacity.ts';
import { countWorkers, divideConfig } from './divide-config.ts';
import type { HeapBoundSizes } from '../../core/overload/heap-capacity.ts';
import { capByHeap, HEAP_BOUND_SIZES } from '../../core/overload/heap-capacity.ts';

/** For commands, which import nothing of `http`. */
export { openFileLimit };

/** How many limits of single clients fit in the heap, for a configuration that is reloaded. */
export function computeClientLimitCapacity(config: Config): number {
  return capByHeap(configuredCapacities(config), oldSpaceLimit()).clientLimits;
}

/** Fewer than an ordinary gateway needs: an operator has to know. */
const FEW_CONNECTIONS = 1024;

/** The configured capacities, reduced to what the heap and the limit on open files allow. Logs each reduction. */
export function computeCapacities(config: Config, logger: Logger): HeapBoundSizes {
  const configured = configuredCapacities(config);
  const heap = oldSpaceLimit();
  const sizes = capByHeap(configured, heap);
  const isLess = HEAP_BOUND_SIZES.some((kind) => sizes[kind] < configured[kind]);
  if (isLess) {
    logger.info(
      { heapMiB: Math.floor(heap / 1024 ** 2), ...sizes },
      'capacities reduced: the heap is too small for the configured ones',
    );
  }
  const openFiles = openFileLimit();
  if (openFiles === undefined) return sizes;
  const connections = capByOpenFiles(config, sizes.connections, openFiles);
  if (connections < sizes.connections) {
    const isNotable = connections < FEW_CONNECTIONS || config.limits.connections !== DEFAULT_CONNECTIONS;
    logger[isNotable ? 'warn' : 'debug'](
      { openFiles, connections },
      'connections reduced: the limit on open files is too low; raise it (ulimit -n, LimitNOFILE= of systemd, ulimits of compose)',
    );
  }
  return { ...sizes, connections };
}

/** How many client connections, in all workers together, a limit on open files allows each of them: at most `limits.connections`. */
export function capConnectionsOfWorkers(config: Config, openFiles: number): number {
  const workers = countWorkers(config);
  const part = divideConfig(config, workers);
  const connections = capByOpenFiles(part, part.limits.connections, openFiles);
  return connections < part.limits.connections ? workers * connections : config.limits.connections;
}

function capByOpenFiles({ upstreams }: Config, wanted: number, openFiles: number): number {
  const upstream = Object.values(upstreams).reduce(
    (sum, each) => sum + each.connections * upstreamOrigins(each).length,
    0,
  );
  return capByDescriptors(wanted, upstream, openFiles);
}

function configuredCapacities({ limits, clients, upstreams }: Config): HeapBoundSizes {
  const hasPerClientLimits = Object.values(upstreams).some((upstream) =>
    [{ scope: limitScopeOf(upstream) }, ...upstream.limits].some(({ scope }) => scope !== 'upstream'),
  );
  return {
    connections: limits.connections,
    requests: limits.requests,
    clients: clients.maxTracked,
    clientLimits: hasPerClientLimits ? clients.maxTracked : 1,
  };
}
