import { performance } from 'node:perf_hooks';

/** So much, and it is done before the turn ends: the first waits for no more than this. */
const MOST = 64;

/** What is sent is counted, and after so much the loop is asked how busy it has been meanwhile. */
const ASK_EVERY = 64;
/** Of the time: the loop works for more of it, and processor time is what there is too little of. */
const BUSY = 0.6;

let held: (() => void)[] = [];
let isDue = false;

/** Does this when all that has come in this turn of the event loop has been read, together with the others of its kind. */
export function atEndOfTurn(act: () => void): void {
  if (held.push(act) >= MOST) actAll();
  if (isDue) return;
  isDue = true;
  setImmediate(endTurn);
}

let sent = 0;
let isBusy = false;
let asked = performance.eventLoopUtilization();

/**
 * Sends something small to a peer: at once, or, while this process is busy, at the end of the turn together with the others.
 * (undici 8.13.1 has a request on a connection that has been used wait for one turn of its own in any case.)
 *
 * To write to a peer that sleeps is to wake it, which over a loopback and on a virtual machine costs more than the write:
 * 24 µs of processor time instead of 8 (docs/performance.md). So requests that come together are sent together, and so are answers:
 * the first one wakes, and the next find awake who they are for. But the first waits until the last has been read; while the loop
 * sleeps in between, processor time is to be had, and nobody is made to wait for it.
 */
export function sendInTurn(send: () => void): void {
  sent += 1;
  if (sent >= ASK_EVERY) askLoop();
  if (isBusy) atEndOfTurn(send);
  else send();
}

function askLoop(): void {
  const now = performance.eventLoopUtilization();
  isBusy = performance.eventLoopUtilization(now, asked).utilization > BUSY;
  asked = now;
  sent = 0;
}

function endTurn(): void {
  isDue = false;
  actAll();
}

function actAll(): void {
  const acts = held;
  held = [];
  for (const act of acts) act();
}
