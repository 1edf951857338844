import type { Millis } from '../../core/scalars.ts';
import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED } from './limit-model.ts';
import type { StationSpec } from '../service/service-station.ts';
import { ServiceStation } from '../service/service-station.ts';
import type { LatencySpec } from '../upstream/latency-model.ts';

export interface WorkersSpec extends Omit<StationSpec, 'pool'> {
  readonly kind: 'workers';
  /** A pool of connections behind the workers, and the time that a request has one. */
  readonly pool?: { readonly connections: number; readonly latency: LatencySpec };
}

/** A service that never rejects: requests beyond its workers wait at it, or slow each other down. */
export class Workers implements LimitModel {
  readonly station: ServiceStation;

  constructor(spec: WorkersSpec) {
    this.station = new ServiceStation(spec);
  }

  get limit(): number {
    return this.station.workers;
  }

  tryAcquire(): LimitDecision {
    return ACCEPTED;
  }

  release(): void {}

  quota(): undefined {
    return undefined;
  }

  setLimit(limit: number, now: Millis): void {
    this.station.setWorkers(limit, now);
  }
}
