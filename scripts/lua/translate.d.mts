/** The modules `typescript`, of version 6, and `typescript-to-lua`. Their types are not installed. */
export interface Compiler {
  readonly typescript: unknown;
  readonly toLua: unknown;
}

export interface Translation {
  /** Plain Lua 5.1, without a module around it. */
  readonly lua: string;
  /** Lua functions that convert a limit to a list and back. */
  readonly stateCodec: string;
  /** Paths of the TypeScript files that contain the translated code. */
  readonly sources: readonly string[];
}

/**
 * @param src the folder of the sources, with a slash at its end
 * @param host the text of host.lua, whose field names are compared with the types
 * @throws where a name or a field no longer exists, or a construct has no translation
 */
export function translate(compiler: Compiler, src: string, host: string): Translation;
