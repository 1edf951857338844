/**
 * Preloaded into a process (`node --import`): answers messages of its parent with the memory and handles of the process.
 * Can make name lookups fail, like an unreachable resolver.
 */
import dns from 'node:dns';
import { readdirSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { heldBytes } from '../heap.ts';

// V8 drops bytecode unused for half a minute, 6 MB after a start, which would hide a leak.
setFlagsFromString('--no-flush-bytecode');

export type ProbeCommand =
  | { readonly command: 'held' }
  | { readonly command: 'aged' }
  /** `error`: the code with which every lookup fails; undefined: all names resolve to 127.0.0.1. */
  | { readonly command: 'lookups'; readonly error?: string };

export interface HeldResources {
  /** Bytes of the heap and external buffers, after a garbage collection. */
  readonly bytes: number;
  readonly rss: number;
  /** Active resources by kind: sockets, servers, timers. */
  readonly handles: Readonly<Record<string, number>>;
  readonly files: number;
}

process.on('message', (question: ProbeCommand) => {
  if (question.command === 'held') return process.send?.(measureHeldResources());
  if (question.command === 'aged') return process.send?.(aged);
  decideLookups(question.error);
  return process.send?.('done');
});
// The channel must not keep the program alive.
process.channel?.unref();

function measureHeldResources(): HeldResources {
  const bytes = heldBytes();
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind !== 'FSReqCallback') handles[kind] = (handles[kind] ?? 0) + 1; // a pending write of the log
  }
  // One entry is the folder itself, open while it is read.
  const files = readdirSync('/dev/fd').length - 1;
  return { bytes, rss: process.memoryUsage.rss(), handles, files };
}

/** Bytes promoted by scavenges so far, live or not: the growth of the old generation at each collection. */
let aged = 0;
let old = oldBytes();
new PerformanceObserver(() => {
  const now = oldBytes();
  aged += Math.max(0, now - old);
  old = now;
}).observe({ entryTypes: ['gc'] });

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? Number.NaN;
}

const NOWHERE = 'getaddrinfo';

/** node:net reads `dns.lookup` at each connection (Node 24). */
function decideLookups(code: string | undefined): void {
  const lookup = (hostname: string, options: unknown, done: (...args: unknown[]) => void): void => {
    const answer = (): void => {
      if (code !== undefined) {
        const error = Object.assign(new Error(`${NOWHERE} ${code} ${hostname}`), { code, syscall: NOWHERE, hostname });
        return done(error);
      }
      const all = typeof options === 'object' && options !== null && 'all' in options && options.all === true;
      if (all) done(null, [{ address: '127.0.0.1', family: 4 }]);
      else done(null, '127.0.0.1', 4);
    };
    setImmediate(answer);
  };
  Object.assign(dns, { lookup });
}
