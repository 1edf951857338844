export type Glob = (text: string) => boolean;

/**
 * `*` matches any text, the empty one included; every other character matches itself. Takes linear time for each part, whatever a
 * client sends: a regular expression with several `.*` would backtrack in a long header for seconds.
 */
export function compileGlob(glob: string): Glob {
  const parts = glob.split('*');
  const first = parts.shift() ?? '';
  const last = parts.pop();
  if (last === undefined) return (text) => text === glob;
  return (text) => {
    const end = text.length - last.length;
    let at = first.length;
    if (at > end || !text.startsWith(first) || !text.endsWith(last)) return false;
    for (const part of parts) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}
