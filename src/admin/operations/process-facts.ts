import type { ProcessStatus } from '../api/response-schemas.ts';
import type { CertificateExpiry } from '../../telemetry/metrics/certificate-metrics.ts';
import type { EnforcementMode } from '../../core/admission/gate-decision.ts';
import type { Millis } from '../../core/scalars.ts';

/** What is known without a query to the serving processes. */
export interface ProcessFacts {
  readonly version: string;
  /** `observe` if all upstreams are observed. */
  readonly mode: EnforcementMode;
  readonly observedUpstreams: readonly string[];
  readonly phase: ProcessStatus['phase'];
  readonly workers: number;
  /** Milliseconds since 1970, as are the next two times. */
  readonly startedAt: Millis;
  readonly configLoadedAt: Millis;
  readonly lastReload: { readonly at: Millis; readonly problem: string | undefined } | undefined;
  readonly store: 'memory' | 'sqlite' | 'redis';
  readonly certificates: readonly CertificateExpiry[];
  /** Why no action is allowed; undefined if they are. */
  readonly actionsDisabled: string | undefined;
}
