/** What `${…}` may refer to. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** @throws an error with a `code` (ENOENT, EACCES …) */
  readonly readFile: (path: string) => string;
}

export interface Substitution {
  readonly text: string;
  /** Whether anything stood for something else. */
  readonly changed: boolean;
  readonly problems: readonly { readonly reference: string; readonly message: string }[];
}

const PLAIN = `$$\{ stands for a plain $\{`;

/** `$${` is a plain `${`; a `${` that is never closed is caught by the last branch. */
const REFERENCE = /\$\$\{|\$\{([^{}$]*)\}|\$\{/g;

/**
 * Replaces `${NAME}` by the variable and `${file:/path}` by the file without its last line break. What comes in is not
 * looked through again. Messages name variables and files, never what they hold.
 */
export function substitute(text: string, { env, readFile }: Surroundings): Substitution {
  const problems: { reference: string; message: string }[] = [];
  let changed = false;
  const result = text.replaceAll(REFERENCE, (reference: string, inner: string | undefined) => {
    if (reference.startsWith('$$')) return '${';
    changed = true;
    const fail = (message: string): string => {
      problems.push({ reference, message });
      return '';
    };
    if (inner === undefined) return fail(`a \${ without its } (${PLAIN})`);
    if (inner.startsWith('file:/')) {
      const path = inner.slice('file:'.length);
      try {
        return readFile(path).replace(/\r?\n$/, '');
      } catch (error) {
        return fail(`cannot read ${path}: ${explain(error)}`);
      }
    }
    if (!/^[A-Za-z_]\w*$/.test(inner)) return fail(`expected \${NAME} or \${file:/path} (${PLAIN})`);
    return env[inner] ?? fail(`the variable ${inner} is not set`);
  });
  return { text: result, changed, problems };
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  EFTYPE: 'it is no regular file',
};

/** Why a file could not be read, in a few words. */
export function explain(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code === undefined ? 'unreadable' : (REASONS[code] ?? code);
}
