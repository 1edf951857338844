// Leaves out functions and methods that nothing names any more: each would be made anew at each call of a script.

/** @param {readonly string[]} kept names that the host speaks of */
export function prune(ts, text, kept) {
  for (let before = ''; before !== text; ) {
    before = text;
    const file = ts.createSourceFile('linked.ts', text, ts.ScriptTarget.ESNext, true);
    const counts = new Map();
    const unnamed = [];
    const visit = (node) => {
      if (ts.isIdentifier(node)) counts.set(node.text, (counts.get(node.text) ?? 0) + 1);
      if (ts.isMethodDeclaration(node) || ts.isFunctionDeclaration(node)) unnamed.push(node);
      if (isLocalFunction(ts, node)) unnamed.push(node);
      ts.forEachChild(node, visit);
    };
    visit(file);
    const nameOf = (node) =>
      (ts.isVariableStatement(node) ? node.declarationList.declarations[0].name : node.name).text;
    const gone = unnamed.filter((node) => node.body !== undefined || ts.isVariableStatement(node));
    for (const node of gone.toSorted((a, b) => b.pos - a.pos)) {
      if (counts.get(nameOf(node)) !== 1 || kept.includes(nameOf(node))) continue;
      text = text.slice(0, node.getStart()) + text.slice(node.end);
      break; // what it held is gone too
    }
  }
  return text;
}

/** `const x = () => …` in a function. */
function isLocalFunction(ts, node) {
  if (!ts.isVariableStatement(node)) return false;
  const [{ name, initializer }, more] = node.declarationList.declarations;
  return !more && ts.isIdentifier(name) && initializer !== undefined && ts.isArrowFunction(initializer);
}
