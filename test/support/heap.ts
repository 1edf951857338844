import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Returns the live bytes of this process: heap and external buffers. */
export function heldBytes(): number {
  collect();
  collect(); // buffers found unreachable by the first collection are released by the second
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
