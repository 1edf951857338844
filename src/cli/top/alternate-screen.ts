/** A terminal's other screen, for as long as something is shown on it: what was there comes back. */

export interface ScreenParts {
  readonly output: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  /** q, Ctrl-C or Ctrl-D was pressed. */
  readonly onQuit: () => void;
  /** What is shown is gone or cut: it is wanted again. */
  readonly onRedraw: () => void;
}

export interface Screen {
  readonly width: number;
  readonly height: number;
  show(lines: readonly string[]): void;
  /** Once, however often it is called. */
  close(): void;
}

/** The other screen, no cursor, and lines that are cut and not wrapped. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
/** All at once, where a terminal knows that: nothing flickers. */
const BEGIN = '\x1b[?2026h\x1b[H';
const END = '\x1b[J\x1b[?2026l';
const CTRL_C = '\x03';
const CTRL_D = '\x04';
const CTRL_Z = '\x1a';

export function openScreen({ output, input, onQuit, onRedraw }: ScreenParts): Screen {
  let shown = '';
  let isOpen = false;
  const enter = (): void => {
    isOpen = true;
    shown = '';
    if (input.isTTY) input.setRawMode(true);
    output.write(ENTER);
  };
  const leave = (): void => {
    if (!isOpen) return;
    isOpen = false;
    output.write(LEAVE);
    if (input.isTTY) input.setRawMode(false);
  };
  const wake = (): void => {
    enter();
    onRedraw();
  };
  const press = (keys: Buffer): void => {
    for (const key of keys.toString()) {
      if (key === 'q' || key === 'Q' || key === CTRL_C || key === CTRL_D) return onQuit();
      if (key !== CTRL_Z) continue;
      leave();
      process.kill(process.pid, 'SIGTSTP');
    }
  };
  const resize = (): void => {
    shown = '';
    onRedraw();
  };
  enter();
  output.on('resize', resize);
  process.on('SIGCONT', wake);
  process.on('exit', leave);
  if (input.isTTY) {
    input.on('data', press);
    input.resume();
  }
  return {
    get width() {
      return output.columns;
    },
    get height() {
      return output.rows;
    },
    show(lines) {
      if (!isOpen) return;
      const frame = lines.map((line) => `${line}\x1b[0m\x1b[K`).join('\r\n');
      if (frame !== shown) output.write(`${BEGIN}${frame}${END}`);
      shown = frame;
    },
    close() {
      leave();
      output.off('resize', resize);
      process.off('SIGCONT', wake);
      process.off('exit', leave);
      input.off('data', press);
      input.pause();
    },
  };
}
