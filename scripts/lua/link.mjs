// Links the parts of the sources that the script needs to one TypeScript file, in the subset that TypeScriptToLua translates well.
//
// What changes, and why:
//   constants           their values replace their names: Lua allows 200 locals and 60 upvalues a function
//   #private names      become p_private: TypeScriptToLua does not support them
//   get x()             becomes a method: a Lua accessor is looked up by its name at each use
//   a.x(), Math.max(…)  short bodies replace calls: inline.mjs
//   Float32Array …      becomes a plain list, and each stored value is rounded as a typed array rounds it
//   { ...a, b: undefined }  calls unset: an assignment of nil to a field that a spread sets has no effect
//   throw new …Error(m) becomes error(m): Lua would define the classes of errors at each run

import { symbolOf, printer } from './print.mjs';

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
  const files = sortByImports(ts, program, entries);
  const declared = declarationsOf(ts, checker, files);
  const wanted = findReachable(ts, checker, declared, roots);
  const constants = constantsOf(ts, checker, declared, wanted);
  const names = assignNames(ts, declared, wanted);
  const print = printer(ts, checker, { declared, constants, names });

  const parts = [PRELUDE];
  for (const { symbol, statement } of declared.values()) {
    if (wanted.has(symbol) && !constants.has(symbol)) parts.push(print(statement));
  }
  const used = new Set([...wanted].map((symbol) => declared.get(symbol).file.fileName));
  const sources = files.map(({ fileName }) => fileName).filter((name) => used.has(name));
  const foreign = sources.filter((name) => !name.startsWith(folder));
  if (foreign.length > 0) throw new Error(`not in ${folder}: ${foreign.join(', ')}`);
  const classNamed = (name) =>
    [...wanted].find((symbol) => symbol.name === name && symbol.flags & ts.SymbolFlags.Class);
  return {
    text: `${parts.join('\n')}\nexport {};\n`,
    sources,
    checker,
    nameOf: (symbol) => names.get(symbol),
    classNamed,
    /** Undefined where no interface or class is called so. */
    typeNamed: (name) => {
      const symbol = [...declared.keys()].find((each) => each.name === name && each.flags & ts.SymbolFlags.Type);
      return symbol && checker.getDeclaredTypeOfSymbol(symbol);
    },
    constant: (name) => {
      const [, value] = [...constants].find(([symbol]) => symbol.name === name) ?? [];
      if (value === undefined) throw new Error(`no number is called ${name}`);
      return value;
    },
  };
}

/** The functions of prelude.lua. */
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

function sortByImports(ts, program, entries) {
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

/** The declarations at the top level of all files, by their symbols. */
function declarationsOf(ts, checker, files) {
  const declared = new Map();
  for (const file of files) {
    for (const statement of file.statements) {
      if (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) continue;
      const list = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement];
      if (list.length !== 1 || !list[0].name) throw new Error(`declares not one name: ${statement.getText()}`);
      const symbol = checker.getSymbolAtLocation(list[0].name);
      declared.set(symbol, { symbol, file, statement, declaration: list[0] });
    }
  }
  return declared;
}

/** The declarations that the roots use, directly or not. */
function findReachable(ts, checker, declared, roots) {
  const wanted = new Set();
  const visit = (node) => {
    if (ts.isHeritageClause(node)) return;
    if (ts.isIdentifier(node)) {
      const symbol = symbolOf(ts, checker, node);
      if (declared.has(symbol)) add(symbol);
    }
    ts.forEachChild(node, visit);
  };
  const add = (symbol) => {
    if (wanted.has(symbol)) return;
    wanted.add(symbol);
    visit(declared.get(symbol).statement);
  };
  for (const root of roots) {
    const found = [...declared.keys()].find(({ name }) => name === root);
    if (found === undefined) throw new Error(`no declaration is called ${root}`);
    add(found);
  }
  return wanted;
}

/** The text of each constant whose value is a known number. */
function constantsOf(ts, checker, declared, wanted) {
  const constants = new Map();
  const numberOf = (node) => {
    if (ts.isNumericLiteral(node)) return node.getText();
    if (ts.isPrefixUnaryExpression(node)) return `(-${numberOf(node.operand)})`;
    if (ts.isIdentifier(node)) return constants.get(symbolOf(ts, checker, node));
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

/** Gives each declaration a name that no other has, nor any local: a body may be inlined in any other function. */
function assignNames(ts, declared, wanted) {
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
