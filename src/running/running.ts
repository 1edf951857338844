import type { Logger } from 'pino';
import type { ConfigSource } from '../config/config-source.ts';
import type { Membership } from './membership.ts';
import type { LogOutput } from '../observe/log-output.ts';
import type { MetricsRegistry } from '../observe/metrics-registry.ts';
import type { Stories } from '../observe/story/stories.ts';
import type { GateView } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';
import type { Practice } from '../practice/server.ts';
import type { Entrance } from '../proxy/entrance.ts';
import type { Lookup } from '../proxy/name.ts';
import type { ReloadControls } from './reloads.ts';

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
