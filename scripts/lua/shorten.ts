/** Lua without comments, empty lines and indents. The sources have no strings of more than a line, nor with `--` in them. */
export function shorten(lua: string): string {
  return lua
    .split('\n')
    .map((line) => line.replace(/^\s+|\s*--.*$|\s+$/g, ''))
    .filter((line) => line !== '')
    .join('\n');
}
