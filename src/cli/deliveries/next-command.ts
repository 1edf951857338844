/** Commands for the user to type. */
import type { DeliveriesListQuery } from './deliveries-arguments.ts';

/** How a command begins. */
export interface CommandPrefix {
  /** `tidegate`, or `npm start --`. */
  readonly program: string;
  /** The value of `--admin`, if it was given: the next command needs it too. */
  readonly admin: string | undefined;
}

/** `tidegate deliveries list --state dead --after …`: quoted for a shell. @param more options, without `--` */
export function formatNextCommand(
  { program, admin }: CommandPrefix,
  words: readonly string[],
  more: DeliveriesListQuery & { readonly confirm?: string } = {},
): string {
  const options = Object.entries({ ...more, admin }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, quote(value)],
  );
  return [program, 'deliveries', ...words.map(quote), ...options].join(' ');
}

function quote(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
