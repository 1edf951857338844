// Decides which calls are replaced by the body of what they call: in Lua a call costs as much as ten additions. An inlined body
// may read private fields of other classes, for nothing is private in Lua.

/** Of a body, in characters. */
const MAX_LENGTH = 200;
/** Of bodies in bodies. */
const MAX_DEPTH = 8;

/**
 * Returns the expression that can replace a call; undefined where the function does more than evaluate one expression.
 * @param isStatement the caller does not use the result
 */
export function inlinableBody(ts, declaration, isStatement = false) {
  const { body, parameters, asteriskToken, modifiers } = declaration ?? {};
  if (!body || asteriskToken || modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword)) return undefined;
  const isPlain = parameters.every(({ name, initializer, dotDotDotToken, questionToken }) => {
    return ts.isIdentifier(name) && !initializer && !dotDotDotToken && !questionToken;
  });
  if (!isPlain) return undefined;
  const [only, more] = ts.isBlock(body) ? body.statements : [{ kind: ts.SyntaxKind.ReturnStatement, expression: body }];
  if (more || !only?.expression) return undefined;
  const isCall = isStatement && ts.isExpressionStatement(only) && ts.isCallExpression(only.expression);
  if (only.kind !== ts.SyntaxKind.ReturnStatement && !isCall) return undefined;
  return isSimple(ts, only.expression) ? only.expression : undefined;
}

/** Whether it is short, and makes no function and no object. */
function isSimple(ts, expression) {
  if (expression.end - expression.getStart() > MAX_LENGTH) return false;
  const holds = (node) =>
    ts.isFunctionLike(node) || ts.isObjectLiteralExpression(node) || Boolean(ts.forEachChild(node, holds));
  return !holds(expression);
}

/**
 * Whether arguments can replace parameters in the body: they are pure, and the body does not change their values; or the body
 * evaluates them first, each once and in the same order.
 */
export function canSubstitute(ts, { body, names, given }) {
  if (ts.isCallExpression(body) && isPropertyPath(ts, body.expression)) {
    const passed = body.arguments.map((each) => each.getText());
    if (passed.join() === names.join()) return true;
  }
  const [first, ...rest] = given;
  if (rest.length === 0 && first !== undefined && isEvaluatedFirst(ts, body, names[0])) return true;
  return given.every(
    (each) => isPure(ts, each) && (isPure(ts, body) || !readsProperty(ts, each) || !mayChangeState(ts, body)),
  );
}

function isPropertyPath(ts, node) {
  if (node.kind === ts.SyntaxKind.ThisKeyword) return true;
  return ts.isPropertyAccessExpression(node) && !node.questionDotToken && isPropertyPath(ts, node.expression);
}

/** Whether the body has the name once, and evaluates it first. */
function isEvaluatedFirst(ts, body, name) {
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

function readsProperty(ts, node) {
  return (
    ts.isPropertyAccessExpression(node) ||
    Boolean(ts.forEachChild(node, (child) => readsProperty(ts, child) || undefined))
  );
}

/** Whether it has an assignment, or a call of anything but `Math` and `Number`. */
function mayChangeState(ts, node) {
  if (ts.isCallExpression(node) && !/^(Math|Number)\./.test(node.expression.getText())) return true;
  const { FirstAssignment, LastAssignment } = ts.SyntaxKind;
  const operator = ts.isBinaryExpression(node) ? node.operatorToken.kind : undefined;
  if (operator >= FirstAssignment && operator <= LastAssignment) return true;
  return Boolean(ts.forEachChild(node, (child) => mayChangeState(ts, child) || undefined));
}

/** Whether it has no calls and no side effects, so that it may be evaluated twice, or later. */
export function isPure(ts, node) {
  if (ts.isIdentifier(node) || ts.isNumericLiteral(node) || ts.isStringLiteral(node)) return true;
  if (node.kind === ts.SyntaxKind.ThisKeyword || node.kind === ts.SyntaxKind.TrueKeyword) return true;
  if (node.kind === ts.SyntaxKind.FalseKeyword) return true;
  if (ts.isPropertyAccessExpression(node)) return !node.questionDotToken && isPure(ts, node.expression);
  if (ts.isParenthesizedExpression(node)) return isPure(ts, node.expression);
  if (!ts.isBinaryExpression(node)) return false;
  const isArithmetic = [
    ts.SyntaxKind.PlusToken,
    ts.SyntaxKind.MinusToken,
    ts.SyntaxKind.AsteriskToken,
    ts.SyntaxKind.SlashToken,
  ];
  return isArithmetic.includes(node.operatorToken.kind) && isPure(ts, node.left) && isPure(ts, node.right);
}

/** The texts that replace parameters and `this` while an inlined body is printed. */
export function makeScopes() {
  const stack = [];
  return {
    isFull: () => stack.length >= MAX_DEPTH,
    self: () => stack.at(-1)?.self,
    /** Undefined where it is no parameter of the inlined function. */
    textOf: (symbol) => stack.at(-1)?.texts.get(symbol),
    within: (scope, print) => {
      stack.push(scope);
      const text = print();
      stack.pop();
      return `(${text})`;
    },
  };
}
