import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** Of Babel's `NodePath`, whose types are not installed. */
interface Place {
  readonly node: { readonly type: string };
  readonly parent?: { readonly type: string };
}

/**
 * The text of a thrown error is for readers. A test that repeats it would only keep it from being improved. Strings elsewhere are
 * decisions (`'budget_exhausted'`), and are mutated.
 */
export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'error-texts', {
    shouldIgnore(path) {
      const { node, parent } = path as Place;
      return node.type === 'NewExpression' && parent?.type === 'ThrowStatement' ? 'the text of an error' : undefined;
    },
  }),
];
