import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** A full collection, to its end. */
export const collect = runInNewContext('gc') as () => void;

/** Bytes that are held, on the heap and in buffers beside it. */
export function heldBytes(): number {
  collect();
  collect(); // what the first one finalized
  const { heapUsed, external } = process.memoryUsage(); // arrayBuffers are part of external
  return heapUsed + external;
}
