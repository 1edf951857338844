import { performance } from 'node:perf_hooks';

/** After this many, a batch is written before the turn ends, which bounds the wait of the first. */
const MAX_BATCH = 64;

/** The load of the event loop is measured after this many writes. */
const CHECK_EVERY = 64;
/** Share of time: an event loop that works for more of it is short of processor time. */
const BUSY_UTILIZATION = 0.6;

let pendingActions: (() => void)[] = [];
let isFlushScheduled = false;

/** Runs an action after everything that arrived in this turn of the event loop has been read, together with other such actions. */
export function afterPoll(act: () => void): void {
  if (pendingActions.push(act) >= MAX_BATCH) flushBatch();
  if (isFlushScheduled) return;
  isFlushScheduled = true;
  setImmediate(flushScheduled);
}

let sentSinceCheck = 0;
let isBusy = false;
let lastUtilization = performance.eventLoopUtilization();

/**
 * Sends something small to a peer: at once, or, while this process is busy, at the end of the turn in a batch.
 * (undici 8.13.1 delays a request on a reused connection by one turn in any case.)
 *
 * A write to a sleeping peer wakes it, which over a loopback and on a virtual machine costs more than the write: 24 µs
 * of processor time instead of 8 (docs/performance.md). So requests that arrive together are sent together, and so are
 * responses: the first write wakes the peer for all of them. In return, the first waits until the last has been read.
 * While the event loop still has idle time, nothing is delayed: there is processor time to spare.
 */
export function batchWhenBusy(send: () => void): void {
  sentSinceCheck += 1;
  if (sentSinceCheck >= CHECK_EVERY) checkUtilization();
  if (isBusy) afterPoll(send);
  else send();
}

/** Whether the event loop is short of processor time, as far as the last writes have shown. */
export function isLoopBusy(): boolean {
  return isBusy;
}

function checkUtilization(): void {
  const now = performance.eventLoopUtilization();
  isBusy = performance.eventLoopUtilization(now, lastUtilization).utilization > BUSY_UTILIZATION;
  lastUtilization = now;
  sentSinceCheck = 0;
}

function flushScheduled(): void {
  isFlushScheduled = false;
  flushBatch();
}

/** Runs the actions of the current batch now. */
export function flushBatch(): void {
  const actions = pendingActions;
  pendingActions = [];
  for (const action of actions) action();
}
