import type { Logger } from 'pino';
import type { CertificateEvent } from '../../core/events/certificate-events.ts';
import type { EndpointFailure } from '../../core/events/gate-views.ts';
import type { OperatorAuditEvent } from '../../core/events/operator-events.ts';
import type { EventSink, ProxyEvent } from '../../core/events/proxy-events.ts';
import type { PerSecond } from '../../core/scalars.ts';
import { describeFailure } from '../describe-failure.ts';
import { describeExpiryEffect } from '../format-values.ts';

/** The last failure of an upstream, in words; undefined if there is none. */
export type FailureDescriber = (upstream: string) => string | undefined;
type LimitStateEvent = Extract<ProxyEvent, { type: 'limit-state' }>;

/**
 * Logs rare events: state changes of an upstream's limit that matter (see `LimitStateLog`), upstreams that fail or recover,
 * ejected and re-admitted endpoints, quarantined accounts, violations of HTTP/2 by upstreams, reloads, failures and recoveries of the shared store, the
 * start and end of an overload, certificates that expire, and operator actions.
 * Logs at `debug`: rate cuts, other state changes, states of nested limits, and states and cuts of single clients and
 * credentials, of which there may be thousands.
 */
export function logRareEvents(logger: Logger, failureOf: FailureDescriber = () => undefined): EventSink {
  // It logs operator actions at any log.level.
  const auditLogger = logger.child({}, { level: 'info' });
  const limitStates = new LimitStateLog(logger, failureOf);
  let isDegraded = false;
  let isPubSubLost = false;
  return (event) => {
    if (event.type === 'limit-state') {
      limitStates.log(event);
    } else if (event.type === 'endpoint-ejected') {
      const { upstream, endpoint, cause, time, code } = event;
      logger.warn({ upstream, endpoint, cause, forMs: time && Math.round(time), code }, 'endpoint ejected');
    } else if (event.type === 'endpoint-returned') {
      const { upstream, endpoint, cause } = event;
      logger.info({ upstream, endpoint, cause }, 'endpoint re-admitted');
    } else if (event.type === 'account-quarantined') {
      const { upstream, account, status, client, time } = event;
      logger.warn(
        { upstream, account, status, client, forMs: Math.round(time) },
        'account quarantined: its credential is rejected',
      );
    } else if (event.type === 'account-returned') {
      const { upstream, account, after } = event;
      logger.info({ upstream, account, forMs: Math.round(after) }, 'account back in service');
    } else if (event.type === 'http2-violated') {
      const { upstream, endpoint, cause } = event;
      logger.warn(
        { upstream, endpoint, cause },
        'upstream violates HTTP/2: its requests share no connection for a time',
      );
    } else if (event.type === 'cut') {
      const { upstream, limit, scope, cause, from, to } = event;
      logger.debug({ upstream, limit, scope, cause, from: finite(from), to: finite(to) }, 'rate cut');
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
    } else if (event.type === 'upstream-failing') {
      const { upstream, failedShare, failure } = event;
      const facts = { failedShare: Number(failedShare.toFixed(2)), cause: failure?.code, problem: describe(failure) };
      logger.warn({ upstream, ...facts }, 'upstream failing');
    } else if (event.type === 'upstream-recovered') {
      const { upstream, after, failure } = event;
      logger.info({ upstream, forMs: Math.round(after), problem: describe(failure) }, 'upstream recovered');
    } else if (event.type === 'certificate') {
      logCertificate(logger, event);
    } else if (event.type === 'api-key-expires') {
      const { keyId, client, expiresAt } = event;
      logger.warn({ keyId, clientName: client, expiresAt }, 'API key expires soon: give the client another one');
    } else if (event.type === 'auth-source') {
      logAuthSource(logger, event);
    } else if (event.type === 'operator-audit') {
      logOperatorAction(auditLogger, event);
    }
  };
}

function describe(failure: EndpointFailure | undefined): string | undefined {
  return failure === undefined ? undefined : describeFailure(failure);
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

function logReload(logger: Logger, event: Extract<ProxyEvent, { type: 'reload' }>): void {
  const { ok, problem, changed, identifyingWrites = [] } = event;
  if (!ok) return logger.error({ problem }, 'configuration not reloaded: the previous one stays in effect');
  logger.info({ changed }, 'configuration reloaded');
  if (identifyingWrites.length === 0) return;
  logger.warn(
    { changed: identifyingWrites },
    'repeats of earlier writes may be sent as new ones: what identifies a write has changed',
  );
}

function logOverload(logger: Logger, event: Extract<ProxyEvent, { type: 'overload' }>): void {
  const { began, cause, delay, heapUsed, shed } = event;
  const facts = { cause, eventLoopDelayMs: Math.round(delay), heapUsed: Math.round(100 * heapUsed) / 100 };
  if (began) logger.warn(facts, 'overloaded: this process refuses some new requests with 503');
  else logger.warn({ ...facts, shed }, 'overload ended');
}

function logCertificate(logger: Logger, { setting, status, expiresAt }: CertificateEvent): void {
  const facts = { setting, expiresAt: new Date(expiresAt).toISOString() };
  if (status === 'renewed') logger.info(facts, 'certificate renewed');
  else if (status === 'expires') logger.warn(facts, 'certificate expires soon: replace it');
  else logger.error(facts, `certificate expired: ${describeExpiryEffect(setting)}`);
}

function logAuthSource(logger: Logger, { setting, problem }: Extract<ProxyEvent, { type: 'auth-source' }>): void {
  if (problem === undefined) logger.info({ setting }, 'client authentication updated');
  else logger.error({ setting, problem }, 'client authentication not updated: what was read before stays in use');
}

function logOperatorAction(logger: Logger, { by, action, outcome, before, after }: OperatorAuditEvent): void {
  const facts = {
    upstream: 'upstream' in action ? action.upstream : undefined,
    client: 'client' in action ? action.client : undefined,
    write: 'write' in action ? action.write : undefined,
    route: 'route' in action ? action.route : undefined,
    delivery: 'delivery' in action ? action.delivery : undefined,
    rate: 'rate' in action ? action.rate : undefined,
    forMs: 'time' in action ? action.time : undefined,
  };
  logger.info({ action: action.action, by, ...facts, outcome, before, after }, 'operator action');
}

/** A change of the rate by this factor, up or down, is worth a line. */
const NOTABLE_RATE_CHANGE = 2;

/**
 * Logs state changes of limits. A limit that is used up changes between `backoff`, `cooldown` and `restoring` several times a
 * second. Of an upstream's own limit, these are logged at `info` only if the rate has doubled or halved since the last such
 * line. The first limit found, its end, and the start and end of a block always are; a block at `warn`. All others: `debug`.
 */
class LimitStateLog {
  readonly #logger: Logger;
  readonly #failureOf: FailureDescriber;
  /** By upstream. The names come from the configuration. */
  readonly #loggedRates = new Map<string, PerSecond>();

  constructor(logger: Logger, failureOf: FailureDescriber) {
    this.#logger = logger;
    this.#failureOf = failureOf;
  }

  log(event: LimitStateEvent): void {
    const { upstream, limit, scope, from, to, blocked, blockedCause, unblocked } = event;
    const level = this.#levelOf(event);
    // JSON has no Infinity, and nothing passes at the rate of a blocked limit: both are left out.
    const rate = to === 'blocked' || !Number.isFinite(event.rate) ? undefined : Number(event.rate.toPrecision(3));
    const problem = blockedCause === 'errors' ? this.#failureOf(upstream) : undefined;
    const facts = { upstream, limit, scope, from, to, rate, blocked, blockedCause, problem, unblocked };
    this.#logger[level](facts, 'limit changed state');
  }

  #levelOf({ upstream, limit, scope, from, to, rate, blocked, unblocked }: LimitStateEvent): 'debug' | 'info' | 'warn' {
    if (scope !== 'upstream') return 'debug';
    if (to === 'blocked' || (blocked !== undefined && limit === undefined)) return 'warn';
    if (limit !== undefined) return 'debug';
    const logged = this.#loggedRates.get(upstream);
    const hasMoved =
      logged === undefined || rate >= NOTABLE_RATE_CHANGE * logged || rate <= logged / NOTABLE_RATE_CHANGE;
    if (!hasMoved && from !== 'open' && to !== 'open' && from !== 'blocked' && unblocked === undefined) return 'debug';
    this.#loggedRates.set(upstream, rate);
    return 'info';
  }
}

/** JSON has no Infinity: the rate of an open limit is left out. */
function finite(rate: PerSecond): PerSecond | undefined {
  return Number.isFinite(rate) ? rate : undefined;
}
