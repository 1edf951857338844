import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { GoodputLoadPlan, Measurement } from './measurement.ts';
import { measurement } from './measurement.ts';

const LOAD = fileURLToPath(new URL('load.ts', import.meta.url));

/** Runs the clients to their end. Rejects if the measurement fails. */
export async function measure(plan: GoodputLoadPlan): Promise<Measurement> {
  const child = fork(LOAD, [JSON.stringify(plan)]);
  let message: unknown;
  child.once('message', (received) => {
    message = received;
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  await once(child, 'exit');
  process.off('exit', kill);
  if (message === undefined) throw new Error('the load generator ended without a measurement');
  return measurement.parse(message);
}
