import { strategyNames } from '../../core/backoff/strategies.ts';
import { scenarioNames } from '../bundled-scenarios.ts';
import type { Shell } from '../command-names.ts';
import { bashCompletion } from './bash-completion.ts';
import type { CommandDescription, WordKind } from './command-description.ts';
import { COMMAND_DESCRIPTIONS } from './command-descriptions.ts';
import { fishCompletion } from './fish-completion.ts';
import { zshCompletion } from './zsh-completion.ts';

/** What a shell offers for a word: these words, or also files. */
export interface Choices {
  readonly words: readonly string[];
  readonly files: boolean;
}

export interface CompletedOption {
  readonly name: string;
  readonly text: string;
  /** Undefined for an option without a value. */
  readonly value: Choices | undefined;
}

/** A command with its choices, as the scripts need it. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  readonly first: Choices;
  readonly others: Choices;
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** The completion script of a shell. It contains all words, so that a completion starts no process. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell](Object.entries(COMMAND_DESCRIPTIONS).map(([name, description]) => complete(name, description)));
}

function complete(name: string, { summary, options = [], first, others }: CommandDescription): CompletedCommand {
  return {
    name,
    summary,
    options: [
      ...options.map((option) => ({
        name: option.name,
        text: option.text,
        value: option.placeholder === undefined ? undefined : choicesOf(option.value),
      })),
      { name: 'help', text: 'print the help of the command', value: undefined },
    ],
    first: choicesOf(first),
    others: choicesOf(others),
  };
}

function choicesOf(kind: WordKind | undefined): Choices {
  switch (kind?.kind) {
    case 'words':
      return { words: kind.words, files: false };
    case 'file':
      return { words: [], files: true };
    case 'command':
      return { words: Object.keys(COMMAND_DESCRIPTIONS), files: false };
    case 'strategy':
      return { words: strategyNames, files: false };
    case 'scenario':
      return { words: scenarioNames(), files: true };
    case 'other':
    case undefined:
      return { words: [], files: false };
  }
}
