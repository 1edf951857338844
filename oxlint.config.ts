import { defineConfig } from 'oxlint';
import { importRules } from './scripts/layers.ts';

/** Nothing here reads a clock, draws a random number, schedules or reads from outside: time and randomness are arguments. */
const PURE = {
  files: ['src/{core,simulator,laboratory,store,sharing}/**'],
  excludeFiles: [
    'src/simulator/{practice,scenario-file}/**',
    'src/laboratory/{commands,fit/log}/**',
    'src/store/persistence/**',
    'src/sharing/redis/**',
  ],
};

const IMPURE_GLOBALS = [
  { name: 'Date', message: 'Time is an argument (now: Millis).' },
  { name: 'performance', message: 'Time is an argument (now: Millis).' },
  { name: 'crypto', message: 'Randomness is an argument (random: Random).' },
  ...['clearImmediate', 'clearInterval', 'clearTimeout', 'console', 'fetch', 'global', 'globalThis', 'navigator'],
  ...['process', 'queueMicrotask', 'require', 'scheduler', 'setImmediate', 'setInterval', 'setTimeout'],
];

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'node'],
  options: { typeAware: true, reportUnusedDisableDirectives: 'error' },
  env: { builtin: true, node: true },
  ignorePatterns: ['dist', 'coverage'],
  categories: { correctness: 'error', suspicious: 'error' },
  rules: {
    // Suspicious, but not here.
    'eslint/no-underscore-dangle': 'off',
    'eslint/no-shadow': 'off',
    'import/no-named-as-default': 'off',
    'import/no-named-as-default-member': 'off', // fast-check's own way of import
    'import/no-unassigned-import': 'off',
    'promise/always-return': 'off',
    'typescript/consistent-return': 'off', // tsc's noImplicitReturns knows unions
    'unicorn/consistent-function-scoping': 'off',
    'unicorn/no-useless-spread': 'off', // pairs of a flat list, a line each
    'unicorn/prefer-add-event-listener': 'off',

    // Type safety.
    'typescript/ban-ts-comment': 'error',
    'typescript/no-deprecated': 'error',
    'typescript/no-dynamic-delete': 'error',
    'typescript/no-empty-object-type': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-invalid-void-type': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-function-type': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/prefer-nullish-coalescing': ['error', { ignorePrimitives: { number: true, string: true } }],
    'typescript/prefer-promise-reject-errors': 'error',
    'typescript/prefer-readonly': 'error',
    'typescript/related-getter-setter-pairs': 'error',
    'typescript/require-await': 'error',
    'typescript/restrict-plus-operands': 'error',
    'typescript/return-await': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/use-unknown-in-catch-callback-variable': 'error',

    // Plain mistakes that are not in "correctness".
    'eslint/array-callback-return': 'error',
    'eslint/eqeqeq': 'error',
    'eslint/no-console': 'error',
    'eslint/no-constructor-return': 'error',
    'eslint/no-empty': 'error',
    'eslint/no-new-func': 'error',
    'eslint/no-return-assign': 'error',
    'eslint/no-self-compare': 'error',
    'eslint/no-sequences': 'error',
    'eslint/no-template-curly-in-string': 'error',
    'eslint/no-use-before-define': ['error', { functions: false, classes: false, variables: false, typedefs: false }],
    'oxc/no-accumulating-spread': 'error',
    'promise/no-return-wrap': 'error',
    'unicorn/no-abusive-eslint-disable': 'error',
    'unicorn/no-instanceof-array': 'error',
    'unicorn/no-object-as-default-parameter': 'error',
    'unicorn/no-process-exit': 'error',
    'unicorn/prefer-math-min-max': 'error',
    'unicorn/prefer-number-properties': 'error',
    'unicorn/prefer-type-error': 'error',

    // One way to write it.
    'eslint/curly': ['error', 'multi-line'],
    'eslint/no-else-return': 'error',
    'eslint/no-lonely-if': 'error',
    'eslint/no-useless-return': 'error',
    'eslint/no-var': 'error',
    'eslint/object-shorthand': 'error',
    'eslint/prefer-const': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'import/no-duplicates': 'error',
    'import/no-mutable-exports': 'error',
    'typescript/array-type': ['error', { default: 'array' }],
    'typescript/consistent-type-exports': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-import-type-side-effects': 'error',
    'typescript/prefer-for-of': 'error',
    'typescript/prefer-function-type': 'error',
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'unicorn/prefer-node-protocol': 'error',
  },

  // For one rule the last override that matches a file holds alone.
  overrides: [
    {
      files: ['src/**'],
      rules: {
        'eslint/max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
        'eslint/no-restricted-properties': [
          'error',
          { object: 'Math', property: 'random', message: 'Randomness is an argument (random: Random).' },
        ],
      },
    },
    {
      // Randomness enters here, and only here the process ends.
      files: [
        'src/main.ts',
        'src/app.ts',
        'src/process/cluster/primary.ts',
        'src/library/backoffs.ts',
        'src/library/retry-options.ts',
        'src/simulator/practice/main.ts',
        'src/admin/page/main.js',
      ],
      rules: { 'eslint/no-restricted-properties': 'off', 'unicorn/no-process-exit': 'off' },
    },
    {
      files: ['src/main.ts', 'src/cli/**', 'src/laboratory/commands/**', 'src/simulator/practice/main.ts'],
      rules: { 'eslint/no-console': 'off' },
    },
    {
      ...PURE,
      rules: { 'eslint/no-restricted-globals': ['error', { checkGlobalObject: true, globals: IMPURE_GLOBALS }] },
    },
    ...importRules(),
    {
      // The page's scripts run in a browser as they are written.
      files: ['src/admin/page/**/*.js'],
      env: { builtin: true, browser: true, node: false },
      rules: {
        'typescript/no-unsafe-type-assertion': 'off', // types.ts says what the API returns
        'typescript/prefer-readonly': 'off', // JavaScript has no readonly
      },
    },
    {
      files: ['test/**'],
      plugins: ['vitest'],
      rules: {
        'eslint/no-console': 'off',
        'typescript/no-deprecated': 'off',
        'typescript/no-non-null-assertion': 'off',
        'typescript/no-unsafe-type-assertion': 'off',
        'typescript/unbound-method': 'off',
        'vitest/consistent-test-it': ['error', { fn: 'test', withinDescribe: 'test' }],
        'vitest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*', 'fc.assert'] }],
        'vitest/no-conditional-expect': 'off',
        'vitest/no-conditional-tests': 'off',
        'vitest/no-disabled-tests': 'error',
        'vitest/no-focused-tests': 'error',
        'vitest/no-identical-title': 'error',
        'vitest/require-to-throw-message': 'off',
        'vitest/valid-expect': ['error', { maxArgs: 2 }],
      },
    },
    {
      // Programs, not tests.
      files: [
        ...[
          'test/setup/**',
          'test/containers/**',
          'test/bench/**',
          'test/soak/**',
          'test/stress/**',
          'test/checker/**',
          'test/mutation/**',
        ],
        'scripts/**',
      ],
      rules: { 'eslint/no-console': 'off', 'unicorn/no-process-exit': 'off' },
    },
    {
      // Written against the API of TypeScript 6, which is not installed, nor are its types.
      files: ['scripts/**/*.mjs'],
      rules: {
        'typescript/no-unsafe-argument': 'off',
        'typescript/no-unsafe-assignment': 'off',
        'typescript/no-unsafe-call': 'off',
        'typescript/no-unsafe-member-access': 'off',
        'typescript/no-unsafe-return': 'off',
      },
    },
    {
      files: ['*.config.ts', 'src/admin/page/uplot.d.ts', 'test/setup/slowest-files.ts'],
      rules: { 'import/no-default-export': 'off' },
    },
  ],
});
