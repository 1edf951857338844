import type { ScenarioConfig } from '../../../src/simulator/scenario-file/scenario-schema.ts';

export interface DrawnRule {
  /** Name of the drawing and of the rule. */
  readonly rule: string;
  readonly scenario: string;
  /** The ablation that removes the rule, or another scenario in which it has no input. */
  readonly without: string | { readonly scenario: string; readonly name: string };
  /** What shows the difference: the accepted rate, or the shares of groups. */
  readonly shows?: 'rate' | 'groups';
  readonly title: string;
  readonly changes?: (config: ScenarioConfig) => Partial<ScenarioConfig>;
}

export const DRAWN_RULES: readonly DrawnRule[] = [
  {
    rule: 'is-same-epoch',
    scenario: 'window-counting-refusals',
    without: 'every 429 cuts',
    title: 'One cut per epoch',
  },
  {
    rule: 'cut-first',
    scenario: 'token-bucket',
    without: 'first cut to a half',
    title: 'The first 429: what was accepted is the limit',
    changes: () => ({ duration: 30_000, warmup: 0 }),
  },
  { rule: 'cut-again', scenario: 'step-down', without: 'small cuts only', title: 'A limit that falls to 40 %' },
  {
    rule: 'ceiling',
    scenario: 'token-bucket',
    without: 'no memory of the ceiling',
    title: 'The rate at which the limit was found is remembered',
  },
  {
    rule: 'background-rejections',
    scenario: 'loud-noise',
    without: 'every rejection counts',
    title: 'One in twenty is rejected at any rate',
  },
  {
    rule: 'plan-growth',
    scenario: 'step-up-10x',
    without: 'K of 10 s',
    title: 'K depends on the rate, and is short while the ceiling is uncertain',
  },
  {
    rule: 'cost',
    scenario: 'blackout',
    without: 'no cost',
    title: 'Where each 429 costs thirty seconds, probe rarely',
  },
  {
    rule: 'rate-on-curve',
    scenario: 'step-up-10x',
    without: 'linear growth',
    title: 'Flat near the ceiling, steep away from it',
  },
  {
    rule: 'is-stale',
    scenario: 'deep-dip',
    without: 'a stale ceiling is kept',
    title: 'A limit that fell far, and comes back',
  },
  {
    rule: 'is-application-limited',
    scenario: 'application-limited',
    without: 'growth without demand',
    title: 'An idle hour proves nothing',
  },
  {
    rule: 'is-blackout',
    scenario: 'window-counting-refusals',
    without: 'no blackouts',
    title: 'Where rejected requests count too, only a pause helps',
  },
  {
    rule: 'probe-interval',
    scenario: 'window-counting-refusals',
    without: 'probes every second',
    title: 'Probes start soon, then become rarer',
  },
  {
    rule: 'reopen',
    scenario: 'fixed-window-10s',
    without: 'a half after a blackout',
    title: 'The length of a blackout shows where the limit is',
  },
  {
    rule: 'moved',
    scenario: 'shared-quota',
    without: 'no moved limit',
    title: 'Another client uses up the limit, two seconds of every thirty',
  },
  {
    rule: 'detect-concurrency',
    scenario: 'concurrency',
    without: 'no concurrency detection',
    title: 'Twenty requests at a time',
  },
  {
    rule: 'quota',
    scenario: 'minute-window-hints',
    without: { scenario: 'minute-window', name: 'no header' },
    title: 'The quota in RateLimit headers is used',
  },
  {
    rule: 'initial-rate',
    scenario: 'known-limit',
    without: { scenario: 'token-bucket', name: 'nothing is known' },
    title: 'A known limit is used at once',
    changes: () => ({ duration: 60_000, warmup: 0 }),
  },
  {
    rule: 'fair-queue',
    scenario: 'abuser',
    without: 'one queue for all',
    shows: 'groups',
    title: 'One client sends a hundred times as much as each other client',
  },
  {
    rule: 'weights',
    scenario: 'weights-4-to-1',
    without: 'one queue for all',
    shows: 'groups',
    title: 'Weights of 4 to 1',
  },
  {
    rule: 'admission',
    scenario: 'token-bucket',
    without: 'no queue',
    title: 'Requests that would wait too long are rejected at once; others wait',
  },
  {
    rule: 'promise',
    scenario: 'priorities',
    without: 'no promise',
    title: 'A client that returns at its Retry-After is admitted',
  },
  {
    rule: 'allowance',
    scenario: 'abuser',
    without: 'no allowance',
    shows: 'groups',
    title: 'A client that asks for far more than its share gets a smaller weight',
  },
];
