import { isBuiltin } from 'node:module';
import type { Plugin } from 'rolldown';
import { RUNTIME_MODULE_ID } from 'rolldown';

const PREFIX = '\0builtin:';
const OF_RUNTIME = '\0runtime-builtin:';

/**
 * Loads Node's modules by `require`. An `import` reads all of their properties (Node 24.21.0,
 * lib/internal/bootstrap/realm.js, syncExports), including getters: `WebSocket` of node:http loads Node's internal undici.
 * A `require` reads only the properties in use.
 */
export function builtins(): Plugin {
  return {
    name: 'builtins',
    resolveId: {
      filter: { id: /^(node:)?[a-z\d_/]+$/ },
      handler(id, importer, { kind }) {
        if (!isBuiltin(id) || importer === undefined || kind !== 'import-statement') return;
        // Every file needs the bundler's runtime, so the runtime itself must not depend on another file.
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

/** Exports that are not imported are dropped from the bundle, and so never read. */
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
