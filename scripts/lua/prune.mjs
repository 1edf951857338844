// Removes functions and methods that no code names any more, because their calls were inlined: the script would create each of
// them at each run.

/** @param {readonly string[]} called names of methods that only host.lua calls */
export function prune(ts, text, called) {
  for (let before = ''; before !== text; ) {
    before = text;
    const file = ts.createSourceFile('linked.ts', text, ts.ScriptTarget.ESNext, true);
    const counts = new Map();
    const functions = [];
    const visit = (node) => {
      if (ts.isIdentifier(node)) counts.set(node.text, (counts.get(node.text) ?? 0) + 1);
      const hasBody = (ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node)) && node.body !== undefined;
      if (hasBody || isLocalFunction(ts, node)) functions.push(node);
      ts.forEachChild(node, visit);
    };
    visit(file);
    const nameOf = (node) =>
      (ts.isVariableStatement(node) ? node.declarationList.declarations[0].name : node.name).text;
    const isUnused = (node) => counts.get(nameOf(node)) === 1 && !called.includes(nameOf(node));
    const unused = functions.toSorted((a, b) => b.pos - a.pos).find(isUnused);
    // One at a time: without it, other functions may be unused too.
    if (unused !== undefined) text = text.slice(0, unused.getStart()) + text.slice(unused.end);
  }
  return text;
}

/** `const x = () => …` in a function. */
function isLocalFunction(ts, node) {
  if (!ts.isVariableStatement(node)) return false;
  const [{ name, initializer }, more] = node.declarationList.declarations;
  return !more && ts.isIdentifier(name) && initializer !== undefined && ts.isArrowFunction(initializer);
}
