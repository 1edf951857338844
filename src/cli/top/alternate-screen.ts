/** The alternate screen of a terminal. Closing it restores the previous contents. */

export interface ScreenOptions {
  readonly output: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  /** q, Ctrl-C or Ctrl-D was pressed. */
  readonly onQuit: () => void;
  /** The terminal was resized or resumed, so the frame must be drawn again. */
  readonly onRedraw: () => void;
}

export interface Screen {
  readonly width: number;
  readonly height: number;
  show(lines: readonly string[]): void;
  /** Restores the terminal. Further calls have no effect. */
  close(): void;
}

/** Alternate screen, cursor hidden, no line wrapping. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
/** Synchronized output, where the terminal supports it: avoids flicker. */
const BEGIN = '\x1b[?2026h\x1b[H';
const END = '\x1b[J\x1b[?2026l';
const CTRL_C = '\x03';
const CTRL_D = '\x04';
const CTRL_Z = '\x1a';

export function openScreen({ output, input, onQuit, onRedraw }: ScreenOptions): Screen {
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
  const resume = (): void => {
    enter();
    onRedraw();
  };
  const onKeys = (keys: Buffer): void => {
    for (const key of keys.toString()) {
      if (key === 'q' || key === 'Q' || key === CTRL_C || key === CTRL_D) return onQuit();
      if (key !== CTRL_Z || process.platform === 'win32') continue; // Windows suspends no process
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
  process.on('SIGCONT', resume);
  process.on('exit', leave);
  if (input.isTTY) {
    input.on('data', onKeys);
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
      process.off('SIGCONT', resume);
      process.off('exit', leave);
      input.off('data', onKeys);
      input.pause();
    },
  };
}
