/** The modules `typescript`, of version 6, and `typescript-to-lua`: neither is installed, nor are their types. */
export interface Compiler {
  readonly typescript: unknown;
  readonly toLua: unknown;
}

export interface Translated {
  /** Plain Lua 5.1, without a module around it. */
  readonly lua: string;
  /** The functions that turn a limit into a list and back. */
  readonly keeper: string;
  /** Paths of the TypeScript files of which something went in. */
  readonly sources: readonly string[];
}

/** @param src the folder of the sources, with a slash at its end */
export function translate(compiler: Compiler, src: string): Translated;
