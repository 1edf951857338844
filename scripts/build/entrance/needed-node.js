// In what Node 12.17 can read, the first that has modules: whoever has an old one is told so, and not shown our code.

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/** Why this Node will not do; undefined where it will. As `engines` of package.json has it. */
export const refusal =
  (major === 22 && minor >= 21) || (major === 24 && minor >= 9) || major > 24
    ? undefined
    : `tidegate needs Node 22.21, or 24.9 and later: this is v${process.versions.node}`;
