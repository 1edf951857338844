/** What a word of the command line may be, for its completion. */
export type WordKind =
  /** One of these words. */
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' }
  /** The name of a command. */
  | { readonly kind: 'command' }
  /** The name of a backoff strategy. */
  | { readonly kind: 'strategy' }
  /** A file, or the name of a bundled scenario. */
  | { readonly kind: 'scenario' }
  /** A word that no shell can know, such as an id. */
  | { readonly kind: 'other' };

export interface OptionDescription {
  /** Without the dashes. */
  readonly name: string;
  /** Of its value, such as `FILE`; undefined for an option without a value. */
  readonly placeholder?: string;
  readonly value?: WordKind;
  readonly text: string;
}

/** A command, as the help, the man page and the completion of shells describe it. */
export interface CommandDescription {
  /** What follows the name in the overview, such as `FILE`. */
  readonly operand?: string;
  /** One line of the overview. */
  readonly summary: string;
  /** The forms of the command line, without `tidegate`. */
  readonly usage: readonly string[];
  /** The first word after the command that is no option; undefined: there is none. */
  readonly first?: WordKind;
  /** The other words; undefined: there are none. */
  readonly others?: WordKind;
  readonly options?: readonly OptionDescription[];
  /** Paragraphs after the options. One that begins with a space is printed as it is. */
  readonly notes?: readonly string[];
}

export const FILE: WordKind = { kind: 'file' };
export const OTHER: WordKind = { kind: 'other' };

export function words(...list: readonly string[]): WordKind {
  return { kind: 'words', words: list };
}

export function option(name: string, text: string): OptionDescription {
  return { name, text };
}

/** @param placeholder of the value */
export function valued(name: string, placeholder: string, text: string, value: WordKind = OTHER): OptionDescription {
  return { name, placeholder, value, text };
}
