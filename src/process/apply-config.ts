import type { Logger } from 'pino';
import { computeClientLimitCapacity, computeQuotaClientCapacity } from '../config/compile/capacities.ts';
import { compileUpstreams } from '../config/compile/compile-policy.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Gate } from '../core/admission/gate.ts';
import type { Clock } from '../core/scalars.ts';
import type { WakeTimer } from '../http/wake-timer.ts';
import type { MemoryStore } from '../store/memory-store.ts';
import type { ActiveConfig } from './active-config.ts';

export interface ApplyConfigParts {
  readonly activeConfig: ActiveConfig;
  readonly store: MemoryStore;
  readonly gate: Gate;
  readonly gateTimer: WakeTimer;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Puts a configuration in effect, in whole or not at all. Requests that wait are evaluated again by the new settings.
 * @param setCurrent called once nothing can fail any more
 * @throws an Error of node:fs if a certificate cannot be read
 */
export function applyConfig(
  previous: Config,
  next: Config,
  { activeConfig, store, gate, gateTimer, clock, logger }: ApplyConfigParts,
  setCurrent: (config: Config) => void,
): void {
  const built = activeConfig.build(next);
  if (next.log.level !== previous.log.level) logger.level = next.log.level;
  setCurrent(next);
  // Before `activate`, because the store must have the upstreams that requests are routed to.
  store.configure(compileUpstreams(next), computeClientLimitCapacity(next), computeQuotaClientCapacity(next));
  activeConfig.activate(built);
  gate.reevaluateQueues(clock.now());
  gateTimer.rearm();
}
