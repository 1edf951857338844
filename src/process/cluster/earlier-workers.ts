import type { Logger } from 'pino';
import type { Millis } from '../../core/scalars.ts';
import type { WorkerProcess } from '../../store/sqlite/stored-worker-processes.ts';
import { sleep } from '../drain.ts';
import { identifyProcess } from './process-identity.ts';

const POLL_INTERVAL: Millis = 50;
/** For the last responses and log lines of a worker whose `drain.timeout` is over. */
const FINAL_TIME: Millis = 2000;

export interface EarlierWorkersParts {
  readonly logger: Logger;
  /** `drain.timeout`: workers whose primary was killed end within it. */
  readonly timeout: Millis;
}

/**
 * Waits until the workers of an earlier primary have ended: their writes are under way, and they do not know the keys of ours.
 * @param left the workers that it left
 * @returns the pids of those that still run after the timeout
 */
export async function awaitEarlierWorkers(
  left: readonly WorkerProcess[],
  { logger, timeout }: EarlierWorkersParts,
): Promise<readonly number[]> {
  const findRunning = (): number[] =>
    left.filter(({ pid, identity }) => identifyProcess(pid) === identity).map(({ pid }) => pid);
  let running = findRunning();
  if (running.length > 0) {
    const message = 'waits for the workers of an earlier process, whose primary was killed (drain.timeout)';
    logger.warn({ pids: running, timeoutMs: timeout }, message);
  }
  const deadline = performance.now() + timeout + FINAL_TIME;
  while (running.length > 0 && performance.now() < deadline) {
    await sleep(POLL_INTERVAL);
    running = findRunning();
  }
  return running;
}
