import { defineConfig } from 'vitest/config';

/** Set by main.ts: the test files of the group, as globs. */
const tests = JSON.parse(process.env['TIDEGATE_MUTATION_TESTS'] ?? '[]') as string[];

// Stryker's runner would run all projects of the main configuration. This is its project "unit".
export default defineConfig({
  test: {
    include: tests,
    exclude: ['test/unit/project/**'], // reads the sources as text, and here they are mutated
    setupFiles: ['test/setup/no-sockets.ts', 'test/setup/globals-restored.ts', 'test/setup/property-seed.ts'],
    isolate: false,
    testTimeout: 300_000, // instrumented code is many times slower
    retry: 0,
  },
});
