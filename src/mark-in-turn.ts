import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/**
 * Where this process has one processor (a container with less than two CPUs), V8 marks what lives between two requests instead of in threads
 * beside them: those share the processor for 40 to 70 ms, and who asks meanwhile may wait as long (docs/performance.md). To be called before the heap has grown: what is being marked is marked to its end by threads.
 */
export function markInTurn(processors = availableParallelism()): void {
  if (processors === 1) setFlagsFromString('--no-concurrent-marking');
}
