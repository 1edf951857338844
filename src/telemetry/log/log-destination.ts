import type { DestinationStream } from 'pino';
import { formatTextLine } from './format-text-line.ts';
import type { StdoutDestination } from './stdout-destination.ts';

/** `auto`: text on a terminal, else JSON. `pretty` is the name of other loggers for text. */
export type LogLineFormat = 'auto' | 'json' | 'text' | 'pretty';

/**
 * Returns where a logger writes: JSON goes to the output itself, so the text form costs it nothing.
 * @param env decides about colours on a terminal: `NO_COLOR`, `TERM`
 */
export function logDestination(
  output: StdoutDestination,
  format: LogLineFormat,
  env: Readonly<Record<string, string | undefined>>,
): DestinationStream {
  if (format === 'json' || (format === 'auto' && !output.isTerminal)) return output;
  return new TextDestination(output, output.isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb');
}

/** Writes JSON lines as text. */
class TextDestination implements DestinationStream {
  readonly #output: StdoutDestination;
  readonly #useColour: boolean;

  constructor(output: StdoutDestination, useColour: boolean) {
    this.#output = output;
    this.#useColour = useColour;
  }

  write(line: string): void {
    this.#output.write(formatTextLine(line, this.#useColour));
  }

  flush(done: () => void): void {
    this.#output.flush(done);
  }
}
