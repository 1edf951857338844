/** Sources that are mutated together, and the tests that must notice it. */
export interface MutationGroup {
  readonly mutate: readonly string[];
  /**
   * The tests of the topic, as globs. Another test that notices, by chance, would say little about the decision. Simulations of
   * minutes are left out: instrumented code is many times slower.
   */
  readonly tests: readonly string[];
}

const exchange = (...names: readonly string[]) => `test/unit/exchange/{${names.join(',')}}.test.ts`;

/** The decisions that money depends on: whether a request is sent again, when, and with which answer it ends. */
export const GROUPS = {
  budget: {
    mutate: ['src/core/retry/retry-token-bucket.ts', 'src/core/admission/retry-admission.ts'],
    tests: [
      exchange('retry-budget', 'exchange-driver', 'driver-polls'),
      'test/unit/admission/{gate,record-outcome,retry-after,retry-admission,settings-changed}.test.ts',
    ],
  },
  breaker: {
    mutate: ['src/core/rate/breaker/*.ts'],
    tests: [
      'test/unit/rate/{active-blocks,block-details,breaker,breaker-states,error-window,failing-senders}.test.ts',
      'test/unit/rate/{failure-detector,partial-block,probe-turns,probing-intervals,rejected-part}.test.ts',
      'test/unit/rate/unanswered-probes.test.ts',
    ],
  },
  idempotency: {
    mutate: ['src/core/idempotency/*.ts'],
    tests: [
      exchange(
        ...['exchange', 'key-claims', 'key-inspection', 'key-registry', 'keyed-write', 'retry', 'write-history'],
        'write-outcome',
      ),
      'test/unit/http/write-digests.test.ts',
      'test/property/exchange.test.ts',
    ],
  },
  retry: {
    mutate: ['src/core/retry/*.ts', '!src/core/retry/retry-token-bucket.ts'],
    tests: [exchange('exchange', 'retry'), 'test/property/exchange.test.ts'],
  },
  hints: {
    mutate: ['src/core/hints/*.ts'],
    tests: [
      'test/unit/hints/{hint-fields,hint-numbers,hints,http-date,parse-delay,quota-fields,read-wait,server-time}.test.ts',
      'test/unit/hints/{single-value-field,structured-fields,throttle}.test.ts',
      'test/property/hints.test.ts',
    ],
  },
  exchange: {
    mutate: ['src/core/exchange/*.ts'],
    tests: [
      exchange(
        ...['authorization-check', 'combined-observers', 'driver-claims', 'driver-departures', 'driver-polls'],
        ...['driver-steps-reported', 'endpoint-outcomes', 'exchange', 'exchange-driver', 'key-lifetime', 'poll'],
        ...['poll-outcomes', 'poll-rounds', 'polling-exchange', 'rejection-retry-after', 'request-facts', 'retry'],
      ),
      'test/property/{exchange,polls}.test.ts',
    ],
  },
} as const satisfies Readonly<Record<string, MutationGroup>>;

/** Small enough for every merge, and always the same: what may spend a retry, and what an outcome says about its write. */
export const SAMPLE: MutationGroup = {
  mutate: ['src/core/retry/retry-token-bucket.ts', 'src/core/idempotency/write-outcome.ts'],
  tests: [exchange('retry-budget', 'exchange', 'retry', 'write-outcome')],
};
