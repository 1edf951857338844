/** Requests may have a path of 32 KiB: a longer one than this is cut. */
const MAX_PATH_LENGTH = 512;

/** A copy of the path, cut if it is long. V8 keeps a whole string alive as long as any slice of it: here, the path's query. */
export function detachPath(path: string): string {
  const cut = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path;
  return Buffer.from(cut).toString();
}
