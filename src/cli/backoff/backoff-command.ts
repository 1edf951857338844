/** `tidegate backoff`: lists, shows or compares strategies. Returns text; prints nothing. */
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { strategies as definitions, strategyNames } from '../../core/backoff/strategies.ts';
import type { BackoffCommand } from './backoff-arguments.ts';
import { listBackoffs, renderBackoff } from './backoff-report.ts';
import { compareBackoffs } from './compare-backoffs.ts';
import { drawBackoffs } from './draw-backoffs.ts';
import { makeStrategy, describeUnusedOptions } from './strategy-options.ts';

export type BackoffOutput =
  | {
      readonly kind: 'shown';
      readonly text: string;
      /** For standard error. */
      readonly remarks: string;
      readonly draw: (() => string) | undefined;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** @param width columns of the terminal */
export function runBackoff({ names, options, attempts, json }: BackoffCommand, width: number): BackoffOutput {
  const [first, ...others] = names;
  if (first === undefined) {
    return { kind: 'shown', text: json ? listAsJson() : listBackoffs(), remarks: '', draw: undefined };
  }
  try {
    const strategies = names.map((name) => makeStrategy(name, options));
    const report =
      others.length === 0
        ? renderBackoff({ strategy: first, ...options }, { attempts })
        : compareBackoffs(strategies, attempts, width);
    const text = json ? `${JSON.stringify(report.json)}\n` : report.text;
    const remarks = describeUnusedOptions(names, options).map((line) => `${line}\n`);
    return { kind: 'shown', text, remarks: remarks.join(''), draw: () => drawBackoffs(strategies, attempts) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: 'failed', message: error.message };
  }
}

function listAsJson(): string {
  const toJson = (name: StrategyName) => {
    const { summary, formula, source } = definitions[name];
    return { name, summary, formula, source };
  };
  return `${JSON.stringify({ strategies: strategyNames.map(toJson) })}\n`;
}
