import type { Millis } from '../../core/scalars.ts';

export interface Tick {
  readonly at: number;
  readonly label: string;
}

/** From 0 to at least `most`, in four steps or fewer of 1, 2 or 5 times a power of ten. */
export function countTicks(max: number): Tick[] {
  const rough = Math.max(max, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.ceil(Math.max(max, 1) / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => ({ at: i * step, label: formatCount(i * step) }));
}

const SECOND: Millis = 1000;
const MINUTE: Millis = 60_000;
const HOUR: Millis = 3_600_000;
const STEPS: readonly Millis[] = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 20, 30].map((n) => n * MINUTE),
  ...[1, 2, 4, 6, 12].map((n) => n * HOUR),
];

/** From 0 to at most `end`, twelve steps at most, in the unit that suits them. */
export function timeTicks(end: Millis): Tick[] {
  const step = STEPS.find((each) => end / each <= 12) ?? 24 * HOUR;
  const [unit, name] = step >= HOUR ? [HOUR, 'h'] : step >= MINUTE ? [MINUTE, 'min'] : [SECOND, 's'];
  const count = Math.floor(end / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => ({
    at: i * step,
    label: i === 0 ? '0' : `${Number(((i * step) / unit).toFixed(1))} ${name}`,
  }));
}

function formatCount(count: number): string {
  if (count >= 1e6) return `${Number((count / 1e6).toFixed(2))}M`;
  return count >= 1e4 ? `${Number((count / 1e3).toFixed(1))}k` : String(Number(count.toFixed(2)));
}
