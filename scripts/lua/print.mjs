// Prints declarations of the sources, with the changes that link.mjs lists.

import { canSubstitute, inlinableBody, isPure, makeScopes } from './inline.mjs';

/** Typed arrays, and the functions of prelude.lua that round a stored value. */
const ROUNDING = { Float32Array: 'float32', Uint16Array: 'uint16' };

/** The symbol of a name; of an imported one, that of its declaration. */
export function symbolOf(ts, checker, node) {
  const isShorthand = ts.isShorthandPropertyAssignment(node.parent) && node.parent.name === node;
  const symbol = isShorthand
    ? checker.getShorthandAssignmentValueSymbol(node.parent)
    : checker.getSymbolAtLocation(node);
  return symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

export function printer(ts, checker, { declared, constants, names }) {
  const scopes = makeScopes();
  const accessorOf = (symbol) => symbol?.declarations?.find((declaration) => ts.isGetAccessor(declaration));
  const isForeign = (symbol) => !declared.has(symbol);

  const rewrite = (node) => {
    switch (node.kind) {
      case ts.SyntaxKind.ExportKeyword:
      case ts.SyntaxKind.HeritageClause:
        return '';
      case ts.SyntaxKind.SetAccessor:
        throw new Error(`cannot be translated: ${node.getText()}`);
      case ts.SyntaxKind.GetAccessor:
        return print(node).replace(/^get /, '');
      case ts.SyntaxKind.PrivateIdentifier:
        return `p_${node.text.slice(1)}`;
      case ts.SyntaxKind.ShorthandPropertyAssignment: {
        const value = printName(node.name);
        return value === node.name.text ? undefined : `${node.name.text}: ${value}`;
      }
      case ts.SyntaxKind.Identifier:
        return printName(node);
      case ts.SyntaxKind.ThisKeyword:
        return scopes.self();
      case ts.SyntaxKind.PropertyAccessExpression:
        return printAccess(node);
      case ts.SyntaxKind.CallExpression:
        return printCall(node);
      case ts.SyntaxKind.Parameter:
        if (destructuresAccessor(node)) throw new Error(`cannot be translated: ${node.getText()}`);
        return undefined;
      case ts.SyntaxKind.VariableDeclaration:
        return ts.isObjectBindingPattern(node.name) ? printDestructuring(node) : undefined;
      case ts.SyntaxKind.TypeReference:
        return ROUNDING[node.typeName.getText()] ? 'number[]' : undefined;
      case ts.SyntaxKind.NewExpression:
        return ROUNDING[node.expression.getText()] ? `zeros(${node.arguments.map(render).join()})` : undefined;
      case ts.SyntaxKind.BinaryExpression:
        return printStore(node);
      case ts.SyntaxKind.ObjectLiteralExpression:
        return printSpread(node);
      case ts.SyntaxKind.ThrowStatement:
        return `error(${node.expression.arguments.map(render).join()});`;
      default:
        return undefined;
    }
  };

  const printAccess = (node) => {
    const accessor = accessorOf(checker.getSymbolAtLocation(node.name));
    if (accessor === undefined) return undefined;
    const isChained = ts.isOptionalChain(node);
    return (isChained ? undefined : inline(accessor, node.expression, [])) ?? `${print(node)}()`;
  };

  const printCall = (node) => {
    const { expression, arguments: given } = node;
    if (ts.isOptionalChain(node)) return undefined;
    if (
      isMinOrMax(expression) &&
      given.length === 2 &&
      given.every((each) => isPure(ts, each) && !callsAccessor(each))
    ) {
      const [a, b] = given.map(render);
      const [less, greater] = expression.name.text === 'max' ? [a, b] : [b, a]; // `>` might be parsed as the end of type arguments
      return `(${less} < ${greater} ? ${b} : ${a})`;
    }
    const isMethod = ts.isPropertyAccessExpression(expression);
    const symbol = isMethod ? checker.getSymbolAtLocation(expression.name) : symbolOf(ts, checker, expression);
    const [declaration, more] = symbol?.declarations ?? [];
    if (!declaration || more) return undefined;
    const isLocal =
      ts.isVariableDeclaration(declaration) && declaration.initializer && ts.isArrowFunction(declaration.initializer);
    if (isLocal) return inline(declaration.initializer, undefined, given);
    const isStatement = ts.isExpressionStatement(node.parent);
    if (ts.isMethodDeclaration(declaration)) {
      return isMethod ? inline(declaration, expression.expression, given, isStatement) : undefined;
    }
    return ts.isFunctionDeclaration(declaration) ? inline(declaration, undefined, given) : undefined;
  };

  const isMinOrMax = (node) =>
    ts.isPropertyAccessExpression(node) &&
    node.expression.getText() === 'Math' &&
    ['max', 'min'].includes(node.name.text);

  /** Whether it reads an accessor, which becomes a call. */
  const callsAccessor = (node) => {
    const isOne =
      ts.isPropertyAccessExpression(node) && accessorOf(checker.getSymbolAtLocation(node.name)) !== undefined;
    return isOne || Boolean(ts.forEachChild(node, (child) => callsAccessor(child) || undefined));
  };

  const inline = (declaration, receiver, given, isStatement = false) => {
    const body = inlinableBody(ts, declaration, isStatement);
    if (body === undefined || scopes.isFull() || given.length !== declaration.parameters.length) return undefined;
    if (receiver && !isPure(ts, receiver)) return undefined;
    const names = declaration.parameters.map(({ name }) => name.text);
    if (!canSubstitute(ts, { body, names, given })) return undefined;
    const texts = declaration.parameters.map(({ name }, i) => [
      checker.getSymbolAtLocation(name),
      `(${render(given[i])})`,
    ]);
    const self = receiver ? render(receiver) : scopes.self();
    return scopes.within({ texts: new Map(texts), self }, () => render(body));
  };

  const printName = (node) => {
    const symbol = symbolOf(ts, checker, node);
    const text = scopes.textOf(symbol);
    if (text !== undefined) return text;
    return constants.get(symbol) ?? names.get(symbol) ?? node.text;
  };

  /** Whether a parameter is `{ a, b }` where a or b is an accessor. */
  const destructuresAccessor = ({ name, type }) => {
    if (!ts.isObjectBindingPattern(name) || type === undefined) return false;
    const from = checker.getTypeFromTypeNode(type);
    return name.elements.some((each) =>
      accessorOf(checker.getPropertyOfType(from, (each.propertyName ?? each.name).getText())),
    );
  };

  /** `const { a, b } = c` where a or b is an accessor. */
  const printDestructuring = (node) => {
    const type = checker.getTypeAtLocation(node.initializer);
    const parts = node.name.elements.map(({ propertyName, name, initializer }) => {
      const key = (propertyName ?? name).getText();
      return { key, name: name.getText(), initializer, accessor: accessorOf(checker.getPropertyOfType(type, key)) };
    });
    if (!parts.some(({ accessor }) => accessor)) return undefined;
    if (parts.some(({ initializer }) => initializer)) throw new Error(`cannot be translated: ${node.getText()}`);
    const from = render(node.initializer);
    if (from.includes('(')) throw new Error(`would be evaluated more than once: ${node.getText()}`);
    const read = ({ key, accessor }) =>
      (accessor && inline(accessor, node.initializer, [])) ?? `${from}.${key}${accessor ? '()' : ''}`;
    return parts.map((part) => `${part.name} = ${read(part)}`).join(', ');
  };

  /** `{ ...a, b: undefined }`: in Lua the assignment of nil would leave the value that the spread has set. */
  const printSpread = (node) => {
    const spread = node.properties.findIndex((property) => ts.isSpreadAssignment(property));
    if (spread < 0) return undefined;
    let printed = print(node);
    for (const { name, initializer } of node.properties.slice(spread + 1)) {
      const type = checker.getTypeAtLocation(name);
      if (checker.getNonNullableType(type) === type) continue;
      if (initializer?.getText() !== 'undefined') throw new Error(`may be undefined: ${node.getText()}`);
      printed = `unset(${printed}, '${name.getText()}')`;
    }
    return printed;
  };

  const printStore = (node) => {
    if (node.operatorToken.kind !== ts.SyntaxKind.EqualsToken) return undefined;
    if (!ts.isElementAccessExpression(node.left)) return undefined;
    const type = checker.getNonNullableType(checker.getTypeAtLocation(node.left.expression)).symbol;
    const round = type && isForeign(type) ? ROUNDING[type.name] : undefined;
    return round && `${render(node.left)} = ${round}(${render(node.right)})`;
  };

  const print = (node) => {
    const text = node.getSourceFile().text;
    let printed = '';
    let at = node.getStart();
    ts.forEachChild(node, (child) => {
      if (child.end === child.pos) return; // an empty list
      printed += text.slice(at, child.getStart()) + render(child);
      at = child.end;
    });
    return printed + text.slice(at, node.end);
  };

  const render = (node) => rewrite(node) ?? print(node);
  return render;
}
