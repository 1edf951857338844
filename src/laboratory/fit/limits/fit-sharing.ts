/**
 * Finds a service that works on all requests at once, with c workers: with n requests in it, each progresses at the speed
 * min(1, c ÷ n). The log shows n at all times, so it shows the work of each request for each c: the integral of the speed over its
 * time. For the right c these are alike, however many were in flight.
 * L. Kleinrock, Time-shared systems: a theoretical treatment, J. ACM 14 (1967).
 *
 * The likelihood is that of the ends, not of the works: in the order of the ends, each work grows with its own end at the speed of
 * that moment.
 */
import type { AttemptSeries } from './attempt-series.ts';
import type { Departures } from './in-flight-levels.ts';
import { busiestLevel, computeInFlightLevels, listDepartures } from './in-flight-levels.ts';
import { UNKNOWN_LEVEL } from './best-threshold.ts';
import { fitService, type ServiceExplanation, type ServiceFit, ServiceSample } from './service-fit.ts';

/** @returns undefined if the log has no times, or too few requests shared a worker */
export function fitSharing(series: AttemptSeries): ServiceFit | undefined {
  const departures = listDepartures(series);
  if (departures === undefined) return undefined;
  const levels = computeInFlightLevels(series, departures);
  const { ends } = departures;
  const byEnd = Uint32Array.from(ends.keys()).toSorted((a, b) => (ends[a] ?? 0) - (ends[b] ?? 0) || a - b);
  return fitService(busiestLevel(departures, levels), (workers) =>
    explain(series, departures, { levels, byEnd }, workers),
  );
}

function explain(
  { at }: AttemptSeries,
  { accepted, ends }: Departures,
  { levels, byEnd }: { readonly levels: Int32Array; readonly byEnd: Uint32Array },
  workers: number,
): ServiceExplanation {
  const sample = new ServiceSample(accepted.length);
  /** The work done on a request that was there all the time: when each request arrived. */
  const doneAtArrival = new Float64Array(accepted.length);
  let [arrived, inFlight, done, now] = [0, 0, 0, at[accepted[0] ?? 0] ?? 0];
  const speed = (): number => (inFlight <= workers ? 1 : workers / inFlight);
  const advance = (to: number): void => {
    // The time of a gap in the log counts as well, but no request that is examined was there before it.
    done += (to - now) * speed();
    now = to;
  };
  const arriveUntil = (end: number, last: number): void => {
    for (; arrived < accepted.length; arrived += 1) {
      const time = at[accepted[arrived] ?? 0] ?? 0;
      // A request that ends when another one arrives has ended before it, as in `computeInFlightLevels`.
      if (time >= end && arrived > last) return;
      advance(time);
      inFlight += 1;
      doneAtArrival[arrived] = done;
    }
  };
  for (const k of byEnd) {
    const end = ends[k] ?? 0;
    arriveUntil(end, k);
    advance(end);
    const level = levels[accepted[k] ?? 0] ?? 0;
    if (level !== UNKNOWN_LEVEL) sample.add(done - (doneAtArrival[k] ?? 0), level, level >= workers, speed());
    inFlight -= 1;
  }
  return sample.explain(workers);
}
