import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Runs a full collection. */
export const collect = runInNewContext('gc') as () => void;

/** Returns the live bytes on the heap and in external buffers. */
export function heldBytes(): number {
  collect();
  collect(); // frees objects finalized by the first one
  const { heapUsed, external } = process.memoryUsage(); // arrayBuffers are part of external
  return heapUsed + external;
}
