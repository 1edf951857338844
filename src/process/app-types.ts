import type { Logger } from 'pino';
import type { ConfigSource } from '../config/load/config-source.ts';
import type { Membership } from './worker-membership.ts';
import type { LogOutput } from '../telemetry/log/stdout-destination.ts';
import type { MetricsRegistry } from '../telemetry/metrics/exposition/metrics-registry.ts';
import type { Stories } from '../telemetry/explanations/explanation-recorder.ts';
import type { GateView } from '../core/events/proxy-events.ts';
import type { Millis } from '../core/exchange/attempt-outcome.ts';
import type { Practice } from '../simulator/practice/practice-server.ts';
import type { Entrance } from '../http/server/request-source.ts';
import type { Lookup } from '../http/upstream/dns-resolver.ts';
import type { ReloadControls } from './config-reloads.ts';

/** A running Tidegate. */
export interface App extends ReloadControls {
  /** Where it listens, ports filled in: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly telemetryUrl: string | undefined;
  /** The practice upstream it plays itself, if it does. */
  readonly practice: Practice | undefined;
  /** Of metrics; where several processes serve, the admin port tells them. */
  readonly registry?: MetricsRegistry;
  /** Limits, clients and budgets as they stand. */
  view(): GateView;
  /** Of requests; where several processes serve, each worker has its own. */
  readonly stories?: Stories;
  /** Says not ready, serves on for `delay` (`drain.delay` unless given), takes no more, and ends when all is answered or `drain.timeout` is over. */
  drain(delay?: Millis): Promise<void>;
  /** Ends at once. */
  close(): Promise<void>;
}

export interface AppParts {
  readonly logger: Logger;
  /** What the logger writes to, where that is bounded. */
  readonly logOutput?: LogOutput;
  readonly version: string;
  /** Where the configuration comes from; without it, it cannot be read again. */
  readonly source?: ConfigSource | undefined;
  /** As `loadConfig` returns it. */
  readonly substituted?: ReadonlyMap<string, string>;
  /** Finds the addresses of upstreams; the system's own unless given. */
  readonly lookup?: Lookup;
  /** Has this process drained, and ended; it only drains when absent. */
  readonly requestDrain?: () => void;
  /** Where this process is one of several. */
  readonly membership?: Membership;
  /** Where requests come in by the server of another program; `listen`, `admin` and `telemetry` are left alone then. */
  readonly mount?: { readonly entrance: Entrance; readonly proto: 'http' | 'https' };
}
