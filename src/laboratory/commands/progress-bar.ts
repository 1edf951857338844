export interface Terminal {
  readonly write: (text: string) => void;
  readonly columns: number;
}

const WIDTH = 30;
const HINT = '  (Ctrl-C: results so far)';

/** A progress bar on one line, cleared at the end. */
export class ProgressBar {
  readonly #terminal: Terminal;
  #shown = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(progress: number): void {
    const { write, columns } = this.#terminal;
    const done = Math.floor(progress * WIDTH);
    const bar = `  ${'█'.repeat(done)}${'░'.repeat(WIDTH - done)}`;
    const percent = ` ${Math.floor(100 * progress)} %`;
    // A wrapped line cannot be overwritten.
    const line = [bar + percent + HINT, bar + percent, percent].find((each) => each.length < columns) ?? percent;
    if (line === this.#shown) return;
    this.#shown = line;
    write(`\r${line}`);
  }

  clear(): void {
    if (this.#shown !== '') this.#terminal.write(`\r${' '.repeat(this.#shown.length)}\r`);
    this.#shown = '';
  }
}
