import { getSystemErrorMap } from 'node:util';

/** The variables and files that `${…}` may refer to. */
export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** @throws an error with a `code` (ENOENT, EACCES …) */
  readonly readFile: (path: string) => string;
}

export interface Substitution {
  readonly text: string;
  /** Whether the text contained a reference. */
  readonly changed: boolean;
  readonly problems: readonly { readonly reference: string; readonly message: string }[];
}

const ESCAPE_HINT = `write $$\{ for a literal $\{`;

/** `$${` is a literal `${`; the last branch matches an unclosed `${`. */
const REFERENCE = /\$\$\{|\$\{([^{}$]*)\}|\$\{/g;

/** An absolute path, of Windows too: `C:\keys\a`, `C:/keys/a`, `\\server\keys\a`. */
const FILE_REFERENCE = /^file:((?:[A-Za-z]:)?[/\\].*)$/s;

/**
 * Replaces `${NAME}` by the variable and `${file:/path}` by the file without its last line break. Substituted text is not
 * searched for references. Messages contain the names of variables and files, never their contents.
 */
export function substitute(text: string, { env, readFile }: ConfigEnvironment): Substitution {
  const problems: { reference: string; message: string }[] = [];
  let changed = false;
  const result = text.replaceAll(REFERENCE, (reference: string, inner: string | undefined) => {
    if (reference.startsWith('$$')) return '${';
    changed = true;
    const fail = (message: string): string => {
      problems.push({ reference, message });
      return '';
    };
    if (inner === undefined) return fail(`a \${ without a closing } (${ESCAPE_HINT})`);
    const path = FILE_REFERENCE.exec(inner)?.[1];
    if (path !== undefined) {
      try {
        return readFile(path).replace(/\r?\n$/, '');
      } catch (error) {
        return fail(`cannot read ${path}: ${describeFileError(error)}`);
      }
    }
    if (!/^[A-Za-z_]\w*$/.test(inner)) return fail(`expected \${NAME} or \${file:/path} (${ESCAPE_HINT})`);
    return env[inner] ?? fail(`the variable ${inner} is not set`);
  });
  return { text: result, changed, problems };
}

const FILE_ERROR_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  EFTYPE: 'it is not a regular file',
  EUTF16: 'it is UTF-16 text: save it as UTF-8',
  EDATABASE: 'it is a database of idempotency keys',
};

/** The cause of a file error, as the end of a message. */
export function describeFileError(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined) return 'unreadable';
  const errno = error instanceof Error && 'errno' in error ? Number(error.errno) : 0;
  const [, systemText] = getSystemErrorMap().get(errno) ?? [];
  return FILE_ERROR_TEXTS[code] ?? (systemText === undefined ? code : `${systemText} (${code})`);
}
