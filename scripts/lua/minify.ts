/** Removes comments, empty lines and indentation. No string of the sources spans lines or contains `--`. */
export function minify(lua: string): string {
  return lua
    .split('\n')
    .map((line) => line.replace(/^\s+|\s*--.*$|\s+$/g, ''))
    .filter((line) => line !== '')
    .join('\n');
}
