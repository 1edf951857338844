import { executionAsyncResource } from 'node:async_hooks';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 collect as suits a proxy, most of whose objects live for as long as a request does (docs/performance.md). To be called before
 * the heap has grown: what is decided, or begun by then, stays.
 *
 * Nothing is made old: where objects of one place in the program have outlived several scavenges (an upstream was slow, or few
 * requests came), V8 makes all further ones in the old generation, until a full collection finds next to none of it alive. Till then
 * each keeps what it points to, with all of its request.
 *
 * And where this process has one processor (a container with less than two CPUs), a full collection marks what lives in one go. V8
 * would do it in threads beside the program, which share its processor for 40 to 70 ms; or without them between two requests, which
 * takes 250 to 1000 ms until the end, and all requests of that time are kept, and copied when the program stands still for as long as
 * it would have to mark everything at once.
 */
export function tuneCollector(processors = availableParallelism()): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  if (processors === 1) setFlagsFromString('--no-incremental-marking');
  process.nextTick(() => shapes.push(executionAsyncResource()));
}

/**
 * The object of a tick, kept for its shape. Node 24 makes one at each `process.nextTick`, three or four a request, by a literal with
 * computed keys. V8 remembers one shape for such a place, and weakly: once a collection finds none of these objects alive, the next
 * has another shape, and all that follow are made by V8's runtime, key by key (0.4 µs each and more, for 0.05).
 */
const shapes: object[] = [];
