// Uses only the syntax of Node 12.17, the first with ES modules, so that an old Node prints this message, not a syntax error.

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/** Why this Node is not supported; undefined if it is. Must match `engines` in package.json. */
export const refusal =
  (major === 22 && minor >= 21) || (major === 24 && minor >= 9) || major > 24
    ? undefined
    : `tidegate needs Node 22.21, or 24.9 and later: this is v${process.versions.node}`;
