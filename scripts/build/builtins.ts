import { isBuiltin } from 'node:module';
import type { Plugin } from 'rolldown';
import { RUNTIME_MODULE_ID } from 'rolldown';

const PREFIX = '\0builtin:';
const OF_RUNTIME = '\0runtime-builtin:';

/**
 * Takes Node's own modules as CommonJS does. An `import` of one reads every property that it has (Node 24.21.0,
 * lib/internal/bootstrap/realm.js, syncExports), getters too: that of `WebSocket` in node:http loads an undici of Node's
 * own, whatever one has asked for. Of a `require` nothing comes but what is read.
 */
export function builtins(): Plugin {
  return {
    name: 'builtins',
    resolveId: {
      filter: { id: /^(node:)?[a-z\d_/]+$/ },
      handler(id, importer, { kind }) {
        if (!isBuiltin(id) || importer === undefined || kind !== 'import-statement') return;
        // All files need the bundler's runtime: one that is in a file with other modules would need it in turn.
        const whose = importer === RUNTIME_MODULE_ID ? OF_RUNTIME : PREFIX;
        return { id: `${whose}${id}`, moduleSideEffects: false };
      },
    },
    load: {
      filter: { id: /^\0(runtime-)?builtin:/ },
      handler: (id) => ({ code: asModule(id.slice(id.indexOf(':') + 1)), moduleType: 'js' }),
    },
  };
}

/** What nobody imports of it is left out of the bundle, and so never read. */
function asModule(id: string): string {
  const names = Object.keys(process.getBuiltinModule(id) ?? {}).filter(
    (name) => /^[A-Za-z_]\w*$/.test(name) && name !== 'default',
  );
  return [
    `const it = /* @__PURE__ */ process.getBuiltinModule(${JSON.stringify(id)});`,
    'export default it;',
    ...names.map((name) => `const its_${name} = /* @__PURE__ */ (() => it.${name})();`),
    `export { ${names.map((name) => `its_${name} as ${name}`).join(', ')} };`,
  ].join('\n');
}
