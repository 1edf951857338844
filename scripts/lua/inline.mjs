// What does no more than return an expression stands where it is called: in Lua a call costs as much as ten additions. Private
// fields of other classes may be read so, for in Lua nothing is private.

const LONGEST = 160;
const DEEPEST = 8;

/** The expression that a call or a read comes to, if that is all there is to it. @param isStatement nobody asks for its result */
export function bodyOf(ts, declaration, isStatement = false) {
  const { body, parameters, asteriskToken, modifiers } = declaration ?? {};
  if (!body || asteriskToken || modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)) return undefined;
  const isPlain = parameters.every(({ name, initializer, dotDotDotToken, questionToken }) => {
    return ts.isIdentifier(name) && !initializer && !dotDotDotToken && !questionToken;
  });
  if (!isPlain) return undefined;
  const [only, more] = ts.isBlock(body) ? body.statements : [{ kind: ts.SyntaxKind.ReturnStatement, expression: body }];
  if (more || !only?.expression) return undefined;
  const isDone = isStatement && ts.isExpressionStatement(only) && ts.isCallExpression(only.expression);
  if (only.kind !== ts.SyntaxKind.ReturnStatement && !isDone) return undefined;
  return isShort(ts, only.expression) ? only.expression : undefined;
}

function isShort(ts, expression) {
  if (expression.end - expression.getStart() > LONGEST) return false;
  const holds = (node) =>
    ts.isFunctionLike(node) || ts.isObjectLiteralExpression(node) || Boolean(ts.forEachChild(node, holds));
  return !holds(expression);
}

/**
 * Whether arguments may stand in the body in the place of parameters: they are pure, and nothing that the body does changes
 * them; or they are evaluated there in the same order, each once, before all else.
 */
export function mayMove(ts, { body, names, given }) {
  if (ts.isCallExpression(body) && isChain(ts, body.expression)) {
    const passed = body.arguments.map((each) => each.getText());
    if (passed.join() === names.join()) return true;
  }
  const [first, ...rest] = given;
  if (rest.length === 0 && first !== undefined && isFirst(ts, body, names[0])) return true;
  return given.every((each) => isPure(ts, each) && (isPure(ts, body) || !reads(ts, each) || !acts(ts, body)));
}

function isChain(ts, node) {
  if (node.kind === ts.SyntaxKind.ThisKeyword) return true;
  return ts.isPropertyAccessExpression(node) && !node.questionDotToken && isChain(ts, node.expression);
}

/** Whether the name stands once, and is what is evaluated first. */
function isFirst(ts, body, name) {
  let count = 0;
  const visit = (node) => {
    if (ts.isIdentifier(node) && node.text === name) count += 1;
    ts.forEachChild(node, visit);
  };
  visit(body);
  let first = body;
  while (ts.isBinaryExpression(first) || ts.isParenthesizedExpression(first)) first = first.left ?? first.expression;
  return count === 1 && ts.isIdentifier(first) && first.text === name;
}

function reads(ts, node) {
  return (
    ts.isPropertyAccessExpression(node) || Boolean(ts.forEachChild(node, (child) => reads(ts, child) || undefined))
  );
}

/** Whether it may change something: a call of anything but `Math` and `Number`, or an assignment. */
function acts(ts, node) {
  if (ts.isCallExpression(node) && !/^(Math|Number)\./.test(node.expression.getText())) return true;
  const { FirstAssignment, LastAssignment } = ts.SyntaxKind;
  const operator = ts.isBinaryExpression(node) ? node.operatorToken.kind : undefined;
  if (operator >= FirstAssignment && operator <= LastAssignment) return true;
  return Boolean(ts.forEachChild(node, (child) => acts(ts, child) || undefined));
}

/** May be written twice, or later: nothing is called, and nothing changes. */
export function isPure(ts, node) {
  if (ts.isIdentifier(node) || ts.isNumericLiteral(node) || ts.isStringLiteral(node)) return true;
  if (node.kind === ts.SyntaxKind.ThisKeyword || node.kind === ts.SyntaxKind.TrueKeyword) return true;
  if (node.kind === ts.SyntaxKind.FalseKeyword) return true;
  if (ts.isPropertyAccessExpression(node)) return !node.questionDotToken && isPure(ts, node.expression);
  if (ts.isParenthesizedExpression(node)) return isPure(ts, node.expression);
  if (!ts.isBinaryExpression(node)) return false;
  const isSum = [
    ts.SyntaxKind.PlusToken,
    ts.SyntaxKind.MinusToken,
    ts.SyntaxKind.AsteriskToken,
    ts.SyntaxKind.SlashToken,
  ];
  return isSum.includes(node.operatorToken.kind) && isPure(ts, node.left) && isPure(ts, node.right);
}

/** What names stand for while the body of another function is written. */
export function makeScopes() {
  const stack = [];
  return {
    isDeep: () => stack.length >= DEEPEST,
    self: () => stack.at(-1)?.self,
    /** Undefined where it is no parameter of what is written. */
    textOf: (symbol) => stack.at(-1)?.texts.get(symbol),
    within: (scope, write) => {
      stack.push(scope);
      const text = write();
      stack.pop();
      return `(${text})`;
    },
  };
}
