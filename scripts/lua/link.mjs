// Links what the scripts need of the sources to one TypeScript file, in the subset that TypeScriptToLua does well.
//
// What is written anew, and why:
//   constants           stand where they are used: Lua allows 200 locals a function, and 60 of an outer one
//   #private names      p_private: TypeScriptToLua knows none
//   get x()             a method, and so where it is used: accessors are looked up by name at each use
//   a.x(), Math.max(…)  what they come to, where that is short: inline.mjs
//   Float32Array …      a plain list; what is stored is rounded as there
//   { ...a, b: undefined }  unset: an assignment of nil leaves out what it is assigned to
//   throw new …Error(m) error(m): classes of errors would be defined at each call

import { meaningOf, printer } from './print.mjs';

/**
 * @param ts TypeScript's own API, of a version that has one
 * @param {{ readonly entries: readonly string[], readonly roots: readonly string[], readonly folder: string }} options
 */
export function link(ts, { entries, roots, folder }) {
  const program = ts.createProgram([...entries], {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.es2024.d.ts'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  });
  failOn(ts, ts.getPreEmitDiagnostics(program));
  const checker = program.getTypeChecker();
  const files = inOrderOfImport(ts, program, entries);
  const declared = declarationsOf(ts, checker, files);
  const wanted = reach(ts, checker, declared, roots);
  const constants = constantsOf(ts, checker, declared, wanted);
  const names = nameAll(ts, declared, wanted);
  const print = printer(ts, checker, { declared, constants, names });

  const parts = [PRELUDE];
  for (const { symbol, statement } of declared.values()) {
    if (wanted.has(symbol) && !constants.has(symbol)) parts.push(print(statement));
  }
  const used = new Set([...wanted].map((symbol) => declared.get(symbol).file.fileName));
  const sources = files.map(({ fileName }) => fileName).filter((name) => used.has(name));
  if (sources.some((name) => !name.startsWith(folder))) throw new Error(`not of ${folder}: ${sources.join(', ')}`);
  const classNamed = (name) =>
    [...wanted].find((symbol) => symbol.name === name && symbol.flags & ts.SymbolFlags.Class);
  return {
    text: `${parts.join('\n')}\nexport {};\n`,
    sources,
    checker,
    nameOf: (symbol) => names.get(symbol),
    classNamed,
    constant: (name) => [...constants].find(([symbol]) => symbol.name === name)?.[1],
  };
}

/** What the host gives. */
const PRELUDE = `
declare function error(this: void, message: string): never;
declare function zeros(this: void, count: number): number[];
declare function float32(this: void, value: number): number;
declare function uint16(this: void, value: number): number;
declare function unset<Of>(this: void, of: Of, key: string): Of;
`;

export function failOn(ts, diagnostics) {
  if (diagnostics.length === 0) return;
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => '', getNewLine: () => '\n' };
  throw new Error(ts.formatDiagnostics(diagnostics, host));
}

function inOrderOfImport(ts, program, entries) {
  const files = [];
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const statement of file.statements) {
      if (!ts.isImportDeclaration(statement)) continue;
      const path = new URL(statement.moduleSpecifier.text, `file://${file.fileName}`).pathname;
      visit(program.getSourceFile(path));
    }
    files.push(file);
  };
  for (const entry of entries) visit(program.getSourceFile(entry));
  return files;
}

/** All that stands at the top of a file, by its symbol. */
function declarationsOf(ts, checker, files) {
  const declared = new Map();
  for (const file of files) {
    for (const statement of file.statements) {
      if (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) continue;
      const list = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement];
      if (list.length !== 1 || !list[0].name) throw new Error(`one name a statement: ${statement.getText()}`);
      const symbol = checker.getSymbolAtLocation(list[0].name);
      declared.set(symbol, { symbol, file, statement, declaration: list[0] });
    }
  }
  return declared;
}

function reach(ts, checker, declared, roots) {
  const wanted = new Set();
  const visit = (node) => {
    if (ts.isHeritageClause(node)) return;
    if (ts.isIdentifier(node)) {
      const symbol = meaningOf(ts, checker, node);
      if (declared.has(symbol)) want(symbol);
    }
    ts.forEachChild(node, visit);
  };
  const want = (symbol) => {
    if (wanted.has(symbol)) return;
    wanted.add(symbol);
    visit(declared.get(symbol).statement);
  };
  for (const root of roots) {
    const found = [...declared.keys()].find(({ name }) => name === root);
    if (found === undefined) throw new Error(`nothing is called ${root}`);
    want(found);
  }
  return wanted;
}

/** Numbers that are known: what is written where each is used. */
function constantsOf(ts, checker, declared, wanted) {
  const constants = new Map();
  const numberOf = (node) => {
    if (ts.isNumericLiteral(node)) return node.getText();
    if (ts.isPrefixUnaryExpression(node)) return `(-${numberOf(node.operand)})`;
    if (ts.isIdentifier(node)) return constants.get(meaningOf(ts, checker, node));
    if (!ts.isBinaryExpression(node)) return undefined;
    const sides = [numberOf(node.left), numberOf(node.right)];
    return sides.includes(undefined) ? undefined : `(${sides.join(node.operatorToken.getText())})`;
  };
  for (const { symbol, declaration } of declared.values()) {
    if (!wanted.has(symbol) || !ts.isVariableDeclaration(declaration)) continue;
    const text = numberOf(declaration.initializer);
    if (text !== undefined) constants.set(symbol, text);
  }
  return constants;
}

/** No two alike, and none like what is local anywhere: what one function returns may be written into another. */
function nameAll(ts, declared, wanted) {
  const names = new Map();
  const taken = new Set();
  const visit = (node) => {
    const isLocal = ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node);
    if (isLocal && ts.isIdentifier(node.name) && !isTop(node)) taken.add(node.name.text);
    ts.forEachChild(node, visit);
  };
  const isTop = (node) => [...declared.values()].some(({ declaration }) => declaration === node);
  for (const symbol of wanted) visit(declared.get(symbol).statement);
  for (const symbol of declared.keys()) {
    if (!wanted.has(symbol)) continue;
    let name = symbol.name;
    for (let i = 2; taken.has(name); i += 1) name = `${symbol.name}${i}`;
    taken.add(name);
    names.set(symbol, name);
  }
  return names;
}
