import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/setup/longest-first.ts';

const EXCLUDED = ['test/bench/**'];
const SEED = 'test/setup/property-seed.ts';
const APART = 'test/setup/tests-apart.ts';
/**
 * For files that share a process: one that leaves something open fails. To load the modules once for many files saves a third of the
 * processor time.
 */
const RELEASED = [APART, 'test/setup/globals-restored.ts', 'test/setup/resources-released.ts'];
/** Fast, and without sockets and child processes, which test/setup/no-sockets.ts refuses. Slower ones are in test/slow. */
const UNIT = ['test/{unit,property}/**/*.test.ts'];
/** They need modes of files or symbolic links, or remove a database that is open, which Windows refuses. */
const NOT_ON_WINDOWS = [
  'test/unit/auth/watched-file.test.ts',
  'test/unit/checker/database-faults.test.ts',
  'test/unit/cli/clients-command.test.ts',
  'test/unit/process/interrupted-writes.test.ts',
  'test/unit/quota/stored-quotas.test.ts',
  'test/unit/sharing/state-log.test.ts',
  'test/unit/sharing/stored-writes.test.ts',
];
/** Minutes of virtual time. */
const SIMULATED = ['test/slow/**/*.test.ts'];
/** What they see is how fast several processes answer each other: they come after all others. */
const ALONE = ['test/e2e/sharing/replicas-*.test.ts'];

/** They measure the memory of their process, which what another file has left for the garbage collector would change. */
const OWN_PROCESS = [
  'test/integration/connections/busy-connections.test.ts',
  'test/integration/connections/slow-clients.test.ts',
  'test/integration/deliveries/waiting-memory.test.ts',
  'test/integration/limits/queue-memory.test.ts',
  'test/integration/messages/bounded-bodies.test.ts',
  'test/integration/messages/pipelining.test.ts',
];
/** Sockets, servers and child processes. */
const INTEGRATION = ['test/integration/**/*.test.ts'];
/** The page in a browser. */
const PAGE = ['test/browser/**/*.test.ts'];
/** The program as a process. */
const PROGRAM = ['test/!(unit|property|slow|integration|browser)/**/*.test.ts'];

/**
 * The groups run one after the other, because they keep the processors busy to different degrees: a simulation always, a file with
 * sockets a seventh of its time, one with processes a quarter. Each has as many files at a time as keep two processors busy.
 */
const GROUPS = { computing: 0, sockets: 1, processes: 2, alone: 3 };

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: UNIT,
          exclude: process.platform === 'win32' ? NOT_ON_WINDOWS : [],
          setupFiles: [SEED, 'test/setup/no-sockets.ts', 'test/setup/globals-restored.ts'],
          // Nothing of a file outlives it: to share processes halves the time.
          isolate: false,
          maxWorkers: 3,
          sequence: { groupOrder: GROUPS.computing },
        },
      },
      {
        extends: true,
        test: {
          name: 'simulated',
          include: SIMULATED,
          setupFiles: [SEED],
          // Node loads the modules itself. In those that Vite transforms, each use of an import reads a property, and simulations
          // take half as long again. Other files start faster with Vite, which keeps what it has transformed.
          experimental: { viteModuleRunner: false, nodeLoader: false },
          maxWorkers: 3,
          sequence: { groupOrder: GROUPS.computing },
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: INTEGRATION,
          exclude: OWN_PROCESS,
          setupFiles: [SEED, ...RELEASED],
          isolate: false,
          maxWorkers: 10,
          sequence: { groupOrder: GROUPS.sockets },
        },
      },
      {
        extends: true,
        test: {
          name: 'memory',
          include: OWN_PROCESS,
          setupFiles: [APART],
          maxWorkers: 6,
          sequence: { groupOrder: GROUPS.processes },
        },
      },
      {
        extends: true,
        test: {
          name: 'together',
          include: PROGRAM,
          exclude: [...EXCLUDED, ...ALONE],
          setupFiles: RELEASED,
          isolate: false,
          maxWorkers: 6,
          sequence: { groupOrder: GROUPS.processes },
        },
      },
      {
        extends: true,
        test: {
          name: 'page',
          include: PAGE,
          setupFiles: RELEASED,
          isolate: false,
          maxWorkers: 6,
          sequence: { groupOrder: GROUPS.processes },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ALONE,
          exclude: EXCLUDED,
          setupFiles: RELEASED,
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: GROUPS.alone },
        },
      },
    ],
    // Unless a project says otherwise, each file has a process of its own.
    pool: 'forks',
    isolate: true,
    retry: 0,
    sequence: { sequencer: LongestFirst },
    // Minutes of virtual time are seconds on a quiet machine, and a minute on one with other work.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    // Only a hang reaches it.
    expect: { poll: { timeout: 60_000 } },
    // A misspelt filter must not pass for a clean run.
    passWithNoTests: false,
    // The report of a run has no other trace of a failure than the message.
    chaiConfig: { truncateThreshold: 300 },
    reporters: ['default', './test/setup/slowest-files.ts'],
  },
});
