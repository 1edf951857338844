import type { Logger } from 'pino';
import type { EventSink, OperatorEvent, ProxyEvent } from '../../core/events/proxy-events.ts';

/**
 * Logs rare events: state changes of an upstream's limit (`warn` when it is blocked, else `info`), ejected and re-admitted
 * endpoints, reloads, failures and recoveries of the shared store, the start and end of an overload, and operator actions.
 * Logs at `debug`: rate cuts, states of nested limits, and states and cuts of single clients and credentials, of which there
 * may be thousands.
 */
export function logRareEvents(logger: Logger): EventSink {
  let isDegraded = false;
  let isPubSubLost = false;
  return (event) => {
    if (event.type === 'limit-state') {
      const { upstream, limit, scope, from, to, blocked } = event;
      logger[logLevelOf(event)]({ upstream, limit, scope, from, to, blocked }, 'limit changed state');
    } else if (event.type === 'endpoint-ejected') {
      const { upstream, endpoint, time } = event;
      logger.warn({ upstream, endpoint, forMs: Math.round(time) }, 'endpoint ejected');
    } else if (event.type === 'endpoint-returned') {
      const { upstream, endpoint, cause } = event;
      logger.info({ upstream, endpoint, cause }, 'endpoint re-admitted');
    } else if (event.type === 'cut') {
      const { upstream, limit, scope, cause, from, to } = event;
      // JSON has no Infinity: the rate of a limit that was open is left out.
      logger.debug({ upstream, limit, scope, cause, from: Number.isFinite(from) ? from : undefined, to }, 'rate cut');
    } else if (event.type === 'client-state') {
      const { upstream, client, from, to } = event;
      logger.debug({ upstream, client, from, to }, 'client changed state');
    } else if (event.type === 'client-cut') {
      const { upstream, client, allowance } = event;
      logger.debug({ upstream, client, allowance }, 'client allowance cut');
    } else if (event.type === 'store-degraded') {
      if (event.isDegraded !== isDegraded) logStoreDegraded(logger, event);
      isDegraded = event.isDegraded;
    } else if (event.type === 'store-deaf') {
      if (event.isDeaf !== isPubSubLost) logPubSubLost(logger, event);
      isPubSubLost = event.isDeaf;
    } else if (event.type === 'reload') {
      logReload(logger, event);
    } else if (event.type === 'overload') {
      logOverload(logger, event);
    } else if (event.type === 'operator') {
      logOperatorAction(logger, event);
    }
  };
}

function logStoreDegraded(
  logger: Logger,
  { store, isDegraded, cause }: Extract<ProxyEvent, { type: 'store-degraded' }>,
): void {
  if (isDegraded) logger.warn({ store, cause }, 'shared store not responding: this process keeps limits on its own');
  else logger.info({ store }, 'shared store responding again: limits are shared');
}

function logPubSubLost(logger: Logger, { store, isDeaf, cause }: Extract<ProxyEvent, { type: 'store-deaf' }>): void {
  if (isDeaf) {
    logger.warn(
      { store, cause },
      'pub/sub of the shared store unavailable: cuts and holds of other replicas arrive late',
    );
  } else logger.info({ store }, 'pub/sub of the shared store available again');
}

function logReload(logger: Logger, { ok, problem, changed }: Extract<ProxyEvent, { type: 'reload' }>): void {
  if (ok) logger.info({ changed }, 'configuration reloaded');
  else logger.error({ problem }, 'configuration not reloaded: the previous one stays in effect');
}

function logOverload(logger: Logger, event: Extract<ProxyEvent, { type: 'overload' }>): void {
  const { began, cause, delay, heapUsed, shed } = event;
  const facts = { cause, eventLoopDelayMs: Math.round(delay), heapUsed: Math.round(100 * heapUsed) / 100 };
  if (began) logger.warn(facts, 'overloaded: this process refuses some new requests with 503');
  else logger.warn({ ...facts, shed }, 'overload ended');
}

function logOperatorAction(logger: Logger, event: OperatorEvent): void {
  const { action, by } = event;
  const facts = {
    upstream: 'upstream' in event ? event.upstream : undefined,
    client: 'client' in event ? event.client : undefined,
    rate: 'rate' in event ? event.rate : undefined,
    forMs: 'time' in event ? event.time : undefined,
  };
  logger.info({ action, by, ...facts }, 'operator action');
}

function logLevelOf({ limit, scope, to }: Extract<ProxyEvent, { type: 'limit-state' }>): 'debug' | 'info' | 'warn' {
  if (scope !== 'upstream') return 'debug';
  if (to === 'blocked') return 'warn';
  return limit === undefined ? 'info' : 'debug';
}
