import { executionAsyncResource } from 'node:async_hooks';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** libuv resolves names in half of the threads of its pool, which has four by default. */
const POOL_THREADS = 32;

/**
 * Tunes Node for a proxy. Call it before the heap grows, because V8 does not revise earlier decisions, and before the first
 * look-up and the first asynchronous access to a file, because they create the threads of libuv's pool.
 *
 * A look-up of a host name occupies a thread until it ends, which takes ten seconds or more if the name server is silent. With
 * the default pool, two such names delay the look-ups of all others. A size in the environment is kept.
 */
export function tuneNode(processors = availableParallelism()): void {
  process.env['UV_THREADPOOL_SIZE'] ??= String(POOL_THREADS);
  tuneGarbageCollector(processors);
}

/**
 * Most objects of a proxy live as long as a request (docs/performance.md).
 *
 * Disables allocation-site pretenuring. When objects of one allocation site survive several scavenges (a slow upstream, few
 * requests), V8 allocates all further ones in the old generation, until a full collection finds almost none of them alive. Until
 * then, each retains everything it references, with all of its request.
 *
 * On one processor (a container with less than two CPUs), also disables incremental marking. Concurrent marking threads would
 * share the processor with the program for 40 to 70 ms. Marking in steps between requests takes 250 to 1000 ms to finish; all
 * requests of that time are retained and copied, in a pause as long as marking everything at once.
 */
function tuneGarbageCollector(processors: number): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  if (processors === 1) setFlagsFromString('--no-incremental-marking');
  process.nextTick(() => tickObjects.push(executionAsyncResource()));
}

/**
 * A tick object, retained for its hidden class. Node 24 creates one at each `process.nextTick`, three or four per request, by a
 * literal with computed keys. V8 caches one hidden class for such a literal, weakly: once a collection finds none of these objects
 * alive, the next one has another hidden class, and V8's runtime creates all later ones key by key (0.4 µs or more each, not 0.05).
 */
const tickObjects: object[] = [];
