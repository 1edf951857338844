import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { pinned } from './contenders.ts';
import type { Loaded, OverheadLoadPlan } from './plan.ts';
import { loaded, signal } from './plan.ts';
import { processorTime, residentBytes } from './processor-time.ts';

const LOAD = fileURLToPath(new URL('programs/load.ts', import.meta.url));

export interface OverheadMeasurement extends Loaded {
  /** Microseconds of the proxy's CPU time per request. Undefined without a proxy. */
  readonly cpu: number | undefined;
  readonly resident: number | undefined;
}

/**
 * Runs one load against one proxy. Rejects when the load generator fails.
 * @param pid of the proxy; undefined if there is none
 */
export async function measure(plan: OverheadLoadPlan, pid: number | undefined): Promise<OverheadMeasurement> {
  const [execPath, execArgv] = pinned(0, process.execPath, []);
  const child = fork(LOAD, [JSON.stringify(plan)], { execPath, execArgv: [...execArgv] });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let result: Loaded | undefined;
  let before = 0;
  let after = 0;
  child.on('message', (message) => {
    const parsed = signal.safeParse(message);
    if (!parsed.success) result = loaded.parse(message);
    else if (parsed.data === 'begins') before = pid === undefined ? 0 : processorTime(pid);
    else after = pid === undefined ? 0 : processorTime(pid);
  });
  await once(child, 'exit');
  process.off('exit', kill);
  if (result === undefined) throw new Error('the load generator ended without a measurement');
  return {
    ...result,
    cpu: pid === undefined ? undefined : (1e6 * (after - before)) / Math.max(1, result.answered),
    resident: pid === undefined ? undefined : residentBytes(pid),
  };
}
