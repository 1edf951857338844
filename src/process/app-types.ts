import type { Logger } from 'pino';
import type { ConfigSource } from '../config/load/config-source.ts';
import type { WorkerMembership } from './worker-membership.ts';
import type { StdoutDestination } from '../telemetry/log/stdout-destination.ts';
import type { MetricsRegistry } from '../telemetry/metrics/exposition/metrics-registry.ts';
import type { ExplanationRecorder } from '../telemetry/explanations/explanation-recorder.ts';
import type { GateView } from '../core/events/gate-views.ts';
import type { Millis } from '../core/scalars.ts';
import type { PracticeServer } from '../simulator/practice/practice-server.ts';
import type { RequestSource } from '../http/server/request-source.ts';
import type { DnsLookup } from '../http/upstream/dns-resolver.ts';
import type { ReloadControls } from './config-reloads.ts';

/** A running Tidegate. */
export interface App extends ReloadControls {
  /** Where it listens, with the actual port: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly telemetryUrl: string | undefined;
  /** The built-in practice upstream, if there is one. */
  readonly practice: PracticeServer | undefined;
  /** Undefined if several processes serve: the admin port then returns their metrics. */
  readonly registry?: MetricsRegistry;
  /** The current limits, clients and budgets. */
  view(): GateView;
  /** Undefined if several processes serve: each worker has its own. */
  readonly explanations?: ExplanationRecorder;
  /**
   * Reports not ready, serves for another `delay` (`drain.delay` unless given), then accepts no more requests. Resolves when all
   * requests have ended or `drain.timeout` is over.
   */
  drain(delay?: Millis): Promise<void>;
  /** Closes at once. */
  close(): Promise<void>;
}

export interface AppParts {
  readonly logger: Logger;
  /** The destination of the logger, if it is bounded. */
  readonly logOutput?: StdoutDestination;
  readonly version: string;
  /** As in the lines of the logger; a new one unless given. */
  readonly instance?: string;
  /** Where the configuration comes from; without it, there are no reloads. */
  readonly source?: ConfigSource | undefined;
  /** As `loadConfig` returns it. */
  readonly substituted?: ReadonlyMap<string, string>;
  /** Resolves the host names of upstreams; the resolver of the system unless given. */
  readonly lookup?: DnsLookup;
  /** Drains this process and exits, unless it drains already; when absent, a drain does not exit. */
  readonly requestDrain?: () => void;
  /** Given to each of several workers. */
  readonly membership?: WorkerMembership;
  /** The server of another program that mounts the proxy; `listen`, `admin` and `telemetry` are then not opened. */
  readonly mount?: { readonly entrance: RequestSource; readonly proto: 'http' | 'https' };
}
