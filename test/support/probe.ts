/**
 * Loaded into a process before its program (`node --import`): answers its parent, who asks by a message, with what the
 * process holds on to. May have the lookup of names fail, as a resolver that cannot be reached makes it.
 */
import dns from 'node:dns';
import { readdirSync } from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { heldBytes } from './heap.ts';

// V8 drops the bytecode of what has not run for half a minute, 6 MB after a start: that must not hide a leak.
setFlagsFromString('--no-flush-bytecode');

export type Question =
  | { readonly ask: 'held' }
  | { readonly ask: 'aged' }
  /** `error`: the code that every lookup fails with; undefined: all names but addresses are 127.0.0.1. */
  | { readonly ask: 'lookups'; readonly error?: string };

export interface Held {
  /** Bytes of the heap, and of buffers outside of it, after garbage has been collected. */
  readonly bytes: number;
  readonly rss: number;
  /** What keeps the process busy, by kind: sockets, servers, timers. */
  readonly handles: Readonly<Record<string, number>>;
  readonly files: number;
}

process.on('message', (question: Question) => {
  if (question.ask === 'held') return process.send?.(held());
  if (question.ask === 'aged') return process.send?.(aged);
  decideLookups(question.error);
  return process.send?.('done');
});
// The program ends when it would have ended.
process.channel?.unref();

function held(): Held {
  const bytes = heldBytes();
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind !== 'FSReqCallback') handles[kind] = (handles[kind] ?? 0) + 1; // a line of the log on its way
  }
  // One of them is the folder itself, open while it is read.
  const files = readdirSync('/dev/fd').length - 1;
  return { bytes, rss: process.memoryUsage.rss(), handles, files };
}

/** Bytes that have outlived scavenges so far, be they of use or not: how much more each collection left there than the one before. */
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

/** node:net looks `dns.lookup` up at each connection (Node 24). */
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
