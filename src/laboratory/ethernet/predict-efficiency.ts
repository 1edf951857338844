import { OVERHEAD, SLOT } from './ethernet-segment.ts';

/**
 * What Metcalfe and Boggs expected of Q stations that always have something to send, if each knew Q: in each slot of a contention
 * one of them alone begins with A = (1 − 1/Q)^(Q − 1), so it takes W = (1 − A)/A slots. "Ethernet" (CACM 19, 1976), §6; preamble and
 * gap, which came later, are counted in.
 */
export function predictEfficiency(stations: number, frame: number): number {
  const acquisition = (1 - 1 / stations) ** (stations - 1);
  const wait = ((1 - acquisition) / acquisition) * SLOT;
  return frame / (frame + OVERHEAD + wait);
}
