import type { Logger } from 'pino';
import type { Listen, OperatorEvent, TideEvent } from '../../core/events/proxy-events.ts';

/**
 * Writes a line for what changes and is rare: the state of an upstream's limit (`warn` when it is blocked, else `info`), an
 * endpoint that is left out or back, a configuration that was read again, a store that does not answer or lets nothing be heard, or does again, an overload of this process at its begin and at its end, what operators say; at `debug` a limit's cuts, and
 * states of nested limits, and states and cuts of single clients and credentials, of which there may be thousands.
 */
export function logChanges(logger: Logger): Listen {
  let isDegraded = false;
  let isDeaf = false;
  return (event) => {
    if (event.type === 'limit-state') {
      const { upstream, limit, scope, from, to, blocked } = event;
      logger[levelOf(event)]({ upstream, limit, scope, from, to, blocked }, 'limit changed');
    } else if (event.type === 'endpoint-ejected') {
      const { upstream, endpoint, time } = event;
      logger.warn({ upstream, endpoint, forMs: Math.round(time) }, 'endpoint left out');
    } else if (event.type === 'endpoint-returned') {
      const { upstream, endpoint, cause } = event;
      logger.info({ upstream, endpoint, cause }, 'endpoint back');
    } else if (event.type === 'cut') {
      const { upstream, limit, scope, cause, from, to } = event;
      // JSON has no Infinity: the rate of a limit that was open is left out.
      logger.debug({ upstream, limit, scope, cause, from: Number.isFinite(from) ? from : undefined, to }, 'rate cut');
    } else if (event.type === 'client-state') {
      const { upstream, client, from, to } = event;
      logger.debug({ upstream, client, from, to }, 'client changed');
    } else if (event.type === 'client-cut') {
      const { upstream, client, allowance } = event;
      logger.debug({ upstream, client, allowance }, 'client cut');
    } else if (event.type === 'store-degraded') {
      if (event.isDegraded !== isDegraded) logStore(logger, event);
      isDegraded = event.isDegraded;
    } else if (event.type === 'store-deaf') {
      if (event.isDeaf !== isDeaf) logDeaf(logger, event);
      isDeaf = event.isDeaf;
    } else if (event.type === 'reload') {
      logReload(logger, event);
    } else if (event.type === 'overload') {
      logOverload(logger, event);
    } else if (event.type === 'operator') {
      logOperator(logger, event);
    }
  };
}

function logStore(logger: Logger, { store, isDegraded, cause }: Extract<TideEvent, { type: 'store-degraded' }>): void {
  if (isDegraded) logger.warn({ store, cause }, 'the store does not answer: limits are kept by this process alone');
  else logger.info({ store }, 'the store answers: limits are shared again');
}

function logDeaf(logger: Logger, { store, isDeaf, cause }: Extract<TideEvent, { type: 'store-deaf' }>): void {
  if (isDeaf) logger.warn({ store, cause }, 'the store lets us hear or tell nothing: cuts and holds are known late');
  else logger.info({ store }, 'the store lets us hear and tell again');
}

function logReload(logger: Logger, { ok, problem, changed }: Extract<TideEvent, { type: 'reload' }>): void {
  if (ok) logger.info({ changed }, 'configuration reloaded');
  else logger.error({ problem }, 'configuration not reloaded: the one before goes on');
}

function logOverload(logger: Logger, event: Extract<TideEvent, { type: 'overload' }>): void {
  const { began, cause, delay, heapUsed, shed } = event;
  const facts = { cause, eventLoopDelayMs: Math.round(delay), heapUsed: Math.round(100 * heapUsed) / 100 };
  if (began) logger.warn(facts, 'overloaded: this process cannot keep up, and turns requests away with 503');
  else logger.warn({ ...facts, shed }, 'overload over');
}

function logOperator(logger: Logger, event: OperatorEvent): void {
  const { action, by } = event;
  const facts = {
    upstream: 'upstream' in event ? event.upstream : undefined,
    client: 'client' in event ? event.client : undefined,
    rate: 'rate' in event ? event.rate : undefined,
    forMs: 'time' in event ? event.time : undefined,
  };
  logger.info({ action, by, ...facts }, 'told by an operator');
}

function levelOf({ limit, scope, to }: Extract<TideEvent, { type: 'limit-state' }>): 'debug' | 'info' | 'warn' {
  if (scope !== 'upstream') return 'debug';
  if (to === 'blocked') return 'warn';
  return limit === undefined ? 'info' : 'debug';
}
