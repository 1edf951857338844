/** Which folders of src/ a folder may import. The linter enforces this table, and docs/architecture.md shows it. */

export interface Layer {
  /** A folder or file below src/. */
  readonly name: string;
  /** Other entries of src/ that its files may import. */
  readonly imports: readonly string[];
  /** Packages and Node modules that they must not import: a regular expression. */
  readonly noPackages?: string;
}

const ANY = '[^.]';
const SERVERS = '(fastify|undici)($|/)|@fastify/';

export const LAYERS: readonly Layer[] = [
  { name: 'core', imports: [], noPackages: ANY },
  { name: 'telemetry', imports: ['core'] },
  { name: 'config', imports: ['core', 'installation'] },
  { name: 'http', imports: ['core', 'config'] },
  { name: 'sharing', imports: ['core', 'store'], noPackages: SERVERS },
  { name: 'store', imports: ['core', 'config'], noPackages: SERVERS },
  { name: 'config/compile', imports: ['core', 'http', 'store'] },
  { name: 'simulator', imports: ['core', 'config', 'http', 'sharing', 'store'] },
  { name: 'admin', imports: ['core', 'config', 'http', 'installation', 'store', 'telemetry'] },
  {
    name: 'process',
    imports: ['admin', 'app', 'config', 'core', 'http', 'installation', 'sharing', 'simulator', 'store', 'telemetry'],
  },
  { name: 'app', imports: ['admin', 'config', 'core', 'http', 'process', 'store', 'telemetry'] },
  { name: 'laboratory', imports: ['cli', 'config', 'core', 'simulator', 'store', 'telemetry'] },
  {
    name: 'cli',
    imports: ['admin', 'app', 'config', 'core', 'installation', 'laboratory', 'process', 'simulator', 'telemetry'],
  },
  { name: 'library', imports: ['app', 'config', 'core', 'http', 'process', 'simulator', 'telemetry'] },
  { name: 'main', imports: ['cli', 'core', 'laboratory', 'process', 'telemetry'] },
];

const FILES: ReadonlySet<string> = new Set(['app', 'installation', 'main']);
const ENTRIES = [...new Set([...LAYERS.map(({ name }) => name), ...FILES])].filter((name) => !name.includes('/'));

type ImportPattern = { readonly message?: string } & ({ readonly regex: string } | { readonly group: string[] });

interface ImportRule {
  readonly files: string[];
  readonly rules: { readonly 'eslint/no-restricted-imports': ['error', { patterns: ImportPattern[] }] };
}

/** A path such as `./../x.ts` or `../core/../x.ts`, which hides its target. */
const DETOUR = { regex: '(^\\.|[^.])/\\.\\.(/|$)', message: 'An import goes straight to its file.' };

/** Returns one linter rule for each layer. */
export function importRules(): ImportRule[] {
  const rules = LAYERS.map((layer) => {
    const [home] = layer.name.split('/');
    const others = ENTRIES.filter((name) => name !== home && !layer.imports.includes(name));
    const up = FILES.has(layer.name) ? '\\./' : '(\\.\\./)+';
    const message = `${layer.name} imports only ${['itself', ...layer.imports].join(', ')}.`;
    const patterns: ImportPattern[] = [DETOUR, { regex: `^${up}(${others.join('|')})(/|\\.ts$)`, message }];
    if (layer.noPackages !== undefined) patterns.push({ regex: `^(${layer.noPackages})`, message });
    return ruleOf(FILES.has(layer.name) ? `src/${layer.name}.ts` : `src/${layer.name}/**`, patterns);
  });
  const message = 'A browser finds only the files of the page.';
  const page = { regex: '^[^.]|^\\.\\.', message };
  const pageFolder = { regex: '^[^.]|^\\.\\./\\.\\.', message };
  const pageOnly = {
    group: ['../**/admin/**', '!../**/admin/page/**'],
    message: 'cli reads the admin API with what the page has for it.',
  };
  const [cli] = rules.filter(({ files }) => files.includes('src/cli/**'));
  cli?.rules['eslint/no-restricted-imports'][1].patterns.push(pageOnly);
  return [
    ...rules,
    ruleOf('src/admin/page/*.js', [DETOUR, page]),
    ruleOf('src/admin/page/*/*.js', [DETOUR, pageFolder]),
  ];
}

function ruleOf(files: string, patterns: ImportPattern[]): ImportRule {
  return { files: [files], rules: { 'eslint/no-restricted-imports': ['error', { patterns }] } };
}
