/** `tidegate backoff`: strategies as they were asked for. Text from options; nothing is printed here. */
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { strategies as definitions, strategyNames } from '../../core/backoff/strategies.ts';
import type { BackoffCommand } from './backoff-arguments.ts';
import { listBackoffs, renderBackoff } from './backoff-report.ts';
import { compareBackoffs } from './compare-backoffs.ts';
import { drawBackoffs } from './draw-backoffs.ts';
import { makeStrategy, tellUnread } from './strategy-options.ts';

export type BackoffOutput =
  | {
      readonly kind: 'told';
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
    return { kind: 'told', text: json ? listAsJson() : listBackoffs(), remarks: '', draw: undefined };
  }
  try {
    const made = names.map((name) => makeStrategy(name, options));
    const told =
      others.length === 0
        ? renderBackoff({ strategy: first, ...options }, { attempts })
        : compareBackoffs(made, attempts, width);
    const text = json ? `${JSON.stringify(told.json)}\n` : told.text;
    const remarks = tellUnread(names, options).map((line) => `${line}\n`);
    return { kind: 'told', text, remarks: remarks.join(''), draw: () => drawBackoffs(made, attempts) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: 'failed', message: error.message };
  }
}

function listAsJson(): string {
  const tell = (name: StrategyName) => {
    const { summary, formula, source } = definitions[name];
    return { name, summary, formula, source };
  };
  return `${JSON.stringify({ strategies: strategyNames.map(tell) })}\n`;
}
