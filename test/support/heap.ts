import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of this process that somebody still holds on to: the heap, and buffers outside of it. */
export function heldBytes(): number {
  collect();
  collect(); // what the first one has found free, buffers give back by the second
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
