import { FRAME_OVERHEAD_BITS, SLOT_BITS } from './ethernet-segment.ts';

/**
 * The efficiency that Metcalfe and Boggs predict for Q saturated stations that know Q: in each slot of a contention
 * one of them alone begins with A = (1 − 1/Q)^(Q − 1), so it takes W = (1 − A)/A slots. "Ethernet" (CACM 19, 1976), §6; preamble and
 * gap, which came later, are included.
 */
export function predictEfficiency(stations: number, frame: number): number {
  const acquisition = (1 - 1 / stations) ** (stations - 1);
  const wait = ((1 - acquisition) / acquisition) * SLOT_BITS;
  return frame / (frame + FRAME_OVERHEAD_BITS + wait);
}
