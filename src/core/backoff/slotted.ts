/** Strategies that draw a whole number: of slots on a shared channel, or of milliseconds. */
import { scaleCapped, slottedDelay } from './delay-distributions.ts';
import { defineStrategy } from './define-strategy.ts';

/** backoffLimit and attemptLimit of IEEE 802.3. */
const BACKOFF_LIMIT = 10;
const ATTEMPT_LIMIT = 16;

/** ⌊u·2^min(c, 10)⌋ slots after collision c = n + 1, of 51.2 µs (512 bit times at 10 Mb/s). The 16th collision is the last. */
export const ethernet = defineStrategy({
  summary: 'truncated binary exponential backoff: gives up after 16 attempts',
  formula: '⌊u · 2^min(n + 1, 10)⌋ · slot, 15 times',
  expectation: '(2^c − 1) / 2 · slot, c = min(n + 1, 10)',
  source: 'IEEE 802.3 §4.2.3.2.5; Metcalfe, Boggs, "Ethernet" (1976)',
  defaults: { slot: 0.0512 },
  retries: () => ATTEMPT_LIMIT - 1,
  delays: ({ slot }) => slottedDelay((n) => [0, 2 ** Math.min(n + 1, BACKOFF_LIMIT) - 1], slot),
});

/** Uniform on 1 … K(m) slots, m = n + 1 being the collisions so far; K grows fast enough to keep slotted ALOHA stable. */
export const table = defineStrategy({
  summary: 'from 1 to K slots, K from a list',
  formula: '(1 + ⌊u · K⌋) · slot, K = table[n], the last repeated',
  expectation: '(K + 1) / 2 · slot',
  source:
    'Lam, Kleinrock, "Packet Switching in a Multiaccess Broadcast Channel: Dynamic Control Procedures" (1975), heuristic RCP',
  defaults: { table: [1, 10, 100, 200], slot: 1 },
  delays: ({ table: ks, slot }) => slottedDelay((n) => [1, ks[Math.min(n, ks.length - 1)] ?? 1], slot),
});

/** min(max, factor·2^n), then a random whole number from 0 to it, both included: P(delay = max) is 1/(max + 1). */
export const celery = defineStrategy({
  summary: "Celery's retry_backoff with retry_jitter: whole milliseconds (Celery's own are seconds)",
  formula: '⌊u · (x + 1)⌋, x = ⌊min(maxInterval, baseInterval · 2^n)⌋',
  expectation: 'x / 2',
  source: 'Celery, celery.utils.time.get_exponential_backoff_interval',
  defaults: { baseInterval: 1000, maxInterval: 600_000 },
  delays: ({ baseInterval, maxInterval }) =>
    slottedDelay((n) => [0, Math.floor(scaleCapped(baseInterval, 2 ** n, maxInterval))], 1),
});
