import { createHash } from 'node:crypto';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { OutlierSettings } from '../../core/endpoints/outlier-detection.ts';
import { classifyForEndpoint, requestedWait } from '../../core/endpoints/classify-for-endpoint.ts';
import { EndpointBalancer } from '../../core/endpoints/outlier-detection.ts';
import type { AttributedRequest } from '../../core/endpoints/failing-parts.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { EndpointView } from '../../core/events/gate-views.ts';
import { readClientTls } from '../tls/client-tls.ts';
import type { CheckResult } from './health/check-endpoint.ts';
import { HealthChecks, type HealthCheckSettings } from './health/health-checks.ts';
import { LastOutcomes } from './last-outcomes.ts';
import type { AwaitedConnections } from './awaited-connections.ts';
import type { PooledSend } from './pooled-send.ts';
import type { Endpoint, OpenEndpointOptions } from './open-endpoint.ts';
import { openEndpoint } from './open-endpoint.ts';

export interface EndpointsOptions extends OpenEndpointOptions {
  /** Its name in metrics and logs. */
  readonly upstream: string;
  /** Origins, at least one. */
  readonly urls: readonly string[];
  readonly outliers: OutlierSettings;
  /** Each endpoint has limits of its own: a rejection with Retry-After concerns the endpoint, as long as another takes over. */
  readonly hasOwnLimits: boolean;
  /** Undefined if endpoints are not checked. */
  readonly healthCheck: HealthCheckSettings | undefined;
  readonly random: Random;
  readonly listen: EventSink;
  /** The upstream has room for another request: a connection is free, or one more may be opened. */
  readonly onFree: (upstream: string) => void;
  /** A request waits for these connections, outside the gate. */
  readonly onAwaited: (upstream: string, connections: AwaitedConnections) => void;
}

/**
 * What an outcome says about an endpoint. `failed-others-healthy`: it failed while other endpoints work. `waits`: it asked for a
 * wait that is its own, and another takes over.
 */
export type EndpointVerdict = 'healthy' | 'ignored' | 'failed' | 'failed-others-healthy' | 'waits';

/** The endpoints of an upstream with their connections. `EndpointBalancer` chooses among them and ejects those that fail. */
export class Endpoints {
  readonly all: readonly Endpoint[];
  readonly #outlierDetector: EndpointBalancer;
  readonly #clock: Clock;
  /** Requests that found no free connection. */
  #connectionWaits = 0;
  readonly #lastOutcomes: LastOutcomes;
  readonly #fingerprint: string;
  readonly #healthChecks: HealthChecks | undefined;
  readonly #hasOwnLimits: boolean;

  /** @throws an Error of node:fs, when a certificate cannot be read */
  constructor(options: EndpointsOptions) {
    const { upstream, urls, pool, outliers, clock, random, listen } = options;
    this.#clock = clock;
    this.#fingerprint = fingerprintOf(options);
    this.#hasOwnLimits = options.hasOwnLimits;
    this.all = urls.map((url, index) =>
      openEndpoint(url, index, options, {
        onCapacity: () => {
          this.#outlierDetector.onAttemptEnd(index);
          options.onFree(upstream);
        },
        onCapacityChange: (capacity) => {
          this.#outlierDetector.setCapacity(index, capacity);
          options.onFree(upstream);
        },
        onAwaited: (connections) => options.onAwaited(upstream, connections),
        onViolation: ({ message: cause }) => {
          listen({ type: 'http2-violated', upstream, endpoint: this.at(index).label, cause });
        },
      }),
    );
    this.#lastOutcomes = new LastOutcomes(urls.length);
    this.#outlierDetector = new EndpointBalancer(urls.length, pool.maxConnections, outliers, random, (change) => {
      const endpoint = this.at(change.index).label;
      if (change.kind === 'returned') listen({ type: 'endpoint-returned', upstream, endpoint, cause: change.cause });
      else {
        const code = change.cause === 'checks' ? this.#lastOutcomes.of(change.index).failure?.code : undefined;
        listen({ type: 'endpoint-ejected', upstream, endpoint, cause: change.cause, time: change.time, code });
      }
    });
    this.#healthChecks =
      options.healthCheck &&
      new HealthChecks(this.all, options.healthCheck, random, {
        onResult: (endpoint, result, isHealthy) => {
          const { passed } = result;
          if (passed !== undefined) listen({ type: 'endpoint-check', upstream, endpoint: endpoint.label, passed });
          if (isHealthy !== undefined) this.#setHealth(endpoint, result, isHealthy);
        },
      });
  }

  /**
   * Whether endpoints with these options would be the same, contents of certificate files included.
   * @throws an Error of node:fs, when a file cannot be read
   */
  isSameAs(options: EndpointsOptions): boolean {
    return this.#fingerprint === fingerprintOf(options);
  }

  /** Starts the health checks, if there are any. They never pass the gate. */
  startChecks(): void {
    this.#healthChecks?.start();
  }

  stopChecks(): void {
    this.#healthChecks?.stop();
  }

  #setHealth({ index }: Endpoint, result: CheckResult, isHealthy: boolean): void {
    this.#lastOutcomes.recordCheck(index, result.passed === false ? result.failure : undefined, this.#clock.now());
    this.#outlierDetector.setHealth(index, isHealthy);
  }

  /** No request is under way or waiting for a connection. */
  get isIdle(): boolean {
    return this.#outlierDetector.peakUtilization === 0;
  }

  at(index: number): Endpoint {
    const endpoint = this.all[index];
    if (endpoint === undefined) throw new RangeError(`there is no endpoint ${index}`);
    return endpoint;
  }

  get bound(): ResourceBound {
    return {
      name: 'upstream_connections',
      used: this.#outlierDetector.peakUtilization,
      reached: this.#connectionWaits,
    };
  }

  /** Whether it is ejected, or unhealthy by its checks. */
  isEjected(index: number): boolean {
    return this.#outlierDetector.isEjected(index);
  }

  /** What its last outcome showed, for operators. */
  lastOutcome(index: number): Pick<EndpointView, 'failure' | 'workedAt'> {
    return this.#lastOutcomes.of(index);
  }

  /** Requests that can be sent now without waiting for a connection. */
  freeConnections(): number {
    return this.#outlierDetector.freeConnections();
  }

  /** Requests that can be under way at a time. */
  totalConnections(): number {
    return this.#outlierDetector.totalConnections();
  }

  /** Undefined if the endpoint of this label has been removed. */
  findByLabel(label: string): Endpoint | undefined {
    return this.all.find((endpoint) => endpoint.label === label);
  }

  /** The endpoint for the next attempt of a request: see `EndpointBalancer.choose`. */
  choose(
    failedEndpoints: ReadonlySet<number> | undefined,
    isRepeatable: boolean,
    now: Millis,
    request: AttributedRequest,
  ): Endpoint {
    return this.at(this.#outlierDetector.choose(failedEndpoints, isRepeatable, now, request));
  }

  /** @param needsFresh see `EndpointConnections.send` */
  send(endpoint: Endpoint, send: PooledSend, needsFresh: boolean, now: Millis): void {
    this.#outlierDetector.onAttemptStart(endpoint.index);
    endpoint.resolver?.refreshIfDue(now);
    const { connections, upgradeConnections } = endpoint;
    send.pool = typeof send.request.upgrade === 'string' ? upgradeConnections : connections;
    send.pool.send(send, needsFresh);
    if (send.waitedForConnection) this.#connectionWaits += 1;
  }

  /**
   * Judges the endpoint by the outcome of an attempt.
   * @param code of the error, if it has one
   */
  recordOutcome(
    { index }: Endpoint,
    outcome: AttemptOutcome,
    sentAt: Millis,
    request: AttributedRequest,
    code?: string,
  ): EndpointVerdict {
    const verdict = classifyForEndpoint(outcome);
    const now = this.#clock.now();
    if (verdict !== 'nothing') this.#lastOutcomes.record(index, outcome, code, now);
    const wait = this.#hasOwnLimits ? requestedWait(outcome) : undefined;
    if (wait !== undefined && this.#outlierDetector.onWaitRequested(index, wait, sentAt, now, request)) return 'waits';
    if (verdict === 'works') {
      // A rejection shows that the endpoint works, but not that requests like this one are accepted.
      this.#outlierDetector.onSuccess(index, sentAt, now, wait === undefined ? request : undefined);
      return 'healthy';
    }
    if (verdict === 'nothing') {
      this.#outlierDetector.onInconclusive(index, sentAt);
      return 'ignored';
    }
    const concerned = outcome.kind === 'error' && outcome.reason === 'connect' ? undefined : request;
    return this.#outlierDetector.onFailure(index, sentAt, now, concerned) ? 'failed-others-healthy' : 'failed';
  }

  /** The outcome will not be known. */
  recordAbandoned({ index }: Endpoint, sentAt: Millis): void {
    this.#outlierDetector.onInconclusive(index, sentAt);
  }

  async destroy(): Promise<void> {
    this.stopChecks();
    const all = new Set(this.all.flatMap(({ connections, upgradeConnections }) => [connections, upgradeConnections]));
    await Promise.all([...all].map((connections) => connections.destroy()));
  }
}

/** A digest, so that private keys are not kept in memory longer than needed. */
function fingerprintOf({ urls, pool, outliers, hasOwnLimits, healthCheck, refresh }: EndpointsOptions): string {
  const { maxConnections, connectTimeout, http2, tls } = pool;
  const settings = [urls, maxConnections, connectTimeout, http2, readClientTls(tls), outliers, refresh];
  return createHash('sha256')
    .update(JSON.stringify([settings, hasOwnLimits, healthCheck ?? null]))
    .digest('base64');
}
