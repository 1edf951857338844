// TypeScriptToLua needs TypeScript 6, and the project's own is version 7. Therefore neither is a devDependency: npx installs
// both in its cache when they are needed.

import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Compiler } from './translate.mjs';

export const PACKAGES = ['typescript@6.0.2', 'typescript-to-lua@1.37.1'];

/** @param folder one whose node_modules has both packages; undefined for the cache of npx */
export function loadCompiler(folder: string | undefined): Compiler {
  const require = createRequire(join(realpathSync(folder ?? installCompiler()), 'main.js'));
  const typescript: unknown = require('typescript');
  const toLua: unknown = require('typescript-to-lua');
  return { typescript, toLua };
}

/** Returns the folder in the cache of npx. @throws where it is not there and npx cannot download it */
function installCompiler(): string {
  const options = PACKAGES.flatMap((each) => ['--package', each]);
  const tstl = execFileSync('npx', ['--yes', ...options, '-c', 'command -v tstl'], { encoding: 'utf8' }).trim();
  return join(dirname(realpathSync(tstl)), '../..');
}
