import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**'],
    // Each file in a process of its own: sockets, timers and signal handlers of one never reach another.
    pool: 'forks',
    isolate: true,
    maxWorkers: 2,
    retry: 0,
    // Minutes of virtual time are seconds on a quiet machine, and half a minute on one with other work.
    testTimeout: 60_000,
    hookTimeout: 20_000,
    teardownTimeout: 10_000,
    // A misspelt filter must not pass for a clean run.
    passWithNoTests: false,
    reporters: ['default'],
  },
});
