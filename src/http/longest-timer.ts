import type { Millis } from '../core/scalars.ts';

/** The longest timer of Node, 24.8 days. A longer one fires at once, with a warning, so a longer wait takes several timers. */
export const LONGEST_TIMER: Millis = 2 ** 31 - 1;
