import type { ProcessGroup } from '../../admin/operations/process-api.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { CertificateExpiries } from '../certificates/certificate-expiries.ts';
import { CertificateWatch } from '../certificates/certificate-watch.ts';
import type { ResourceStack } from '../resource-stack.ts';
import { UpstreamHealth } from './upstream-health.ts';

const SAMPLE_INTERVAL: Millis = 1000;

export interface WatchProcessParts {
  readonly processes: ProcessGroup;
  readonly certificates: Pick<CertificateExpiries, 'all'>;
  readonly clock: Clock;
  readonly listen: EventSink;
}

/**
 * Emits the events of certificates that expire and of upstreams that fail, until the resources are closed. To be called once
 * for all workers. Keeps no process alive.
 */
export function watchProcess(
  { processes, certificates, clock, listen }: WatchProcessParts,
  resources: Pick<ResourceStack, 'push'>,
): void {
  const watch = new CertificateWatch(
    () => certificates.all(),
    () => Date.now(),
    listen,
  );
  watch.start();
  const health = new UpstreamHealth(listen);
  const sample = async (): Promise<void> => {
    const rates = await processes.query('rates', () => null);
    health.record(rates, clock.now());
  };
  // A sample that fails is left out; the next one covers its time.
  const timer = setInterval(() => void sample().catch(() => undefined), SAMPLE_INTERVAL).unref();
  resources.push(() => {
    watch.stop();
    clearInterval(timer);
    return Promise.resolve();
  });
}
