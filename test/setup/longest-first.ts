// Starts the longest files first, because the last files of a group of projects decide when the next group begins. Vitest knows what
// files took only from a run before in the same checkout; by default it starts the largest first, and the longest are often small.

import { relative } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/** Each takes more than 20 seconds beside others on two processors: the list that test/setup/slowest-files.ts prints. */
const LONGEST = [
  'test/integration/operations/seen-by-prometheus.test.ts',
  'test/integration/operations/alerts-live.test.ts',
  'test/slow/drawings.test.ts',
  'test/slow/oracle.test.ts',
  'test/slow/pool-simulated.test.ts',
  'test/slow/library-limits.test.ts',
  'test/e2e/sharing/replicas-redis-lost.test.ts',
  'test/e2e/sharing/replicas-together.test.ts',
  'test/e2e/process/sqlite-restart.test.ts',
  'test/e2e/release/release.test.ts',
  'test/integration/connections/slow-readers.test.ts',
  'test/integration/writes/oracle-sockets.test.ts',
  'test/integration/connections/http2-upstream.test.ts',
  'test/e2e/packaging/documents.test.ts',
  'test/e2e/process/signals.test.ts',
  'test/e2e/packaging/command-line.test.ts',
  'test/e2e/process/small-heap.test.ts',
  'test/e2e/release/executable.test.ts',
  'test/integration/sharing/lua-parity.test.ts',
  'test/integration/writes/writes-known-again.test.ts',
  'test/integration/writes/write-outcomes.test.ts',
  'test/e2e/process/state-file.test.ts',
  'test/integration/sharing/store-contract.test.ts',
  'test/integration/connections/http2-connection-bound.test.ts',
  'test/integration/writes/given-up-unsent.test.ts',
  'test/e2e/sharing/workers-commands.test.ts',
  'test/integration/identity/checks.test.ts',
  'test/integration/connections/slow-clients.test.ts',
  'test/e2e/packaging/package.test.ts',
  'test/e2e/messages/thousand-intents.test.ts',
  'test/e2e/packaging/bundle-files.test.ts',
  'test/e2e/process/slow-upstream.test.ts',
  'test/e2e/sharing/workers.test.ts',
  'test/e2e/sharing/workers-killed.test.ts',
  'test/e2e/packaging/documents-without-server.test.ts',
  'test/browser/page-keys.test.ts',
  'test/browser/page-incidents.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is no array
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

/** The place in the list, or behind it. */
function rankOf({ moduleId }: TestSpecification): number {
  const index = LONGEST.indexOf(relative('', moduleId));
  return index === -1 ? LONGEST.length : index;
}
