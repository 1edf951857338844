// Translates the limit that the proxy and the simulator run from TypeScript to the Lua script that Redis runs.
//
//   npm run lua [-- --check] [--out FILE] [--compiler FOLDER]
//
//   --check             writes nothing, needs no compiler; exits with 1 if the file is not what the sources generate
//   --out FILE          instead of src/sharing/redis/scripts/limit.lua
//   --compiler FOLDER   whose node_modules has the compiler; otherwise npx installs it

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { loadCompiler } from './compiler.ts';
import { isUpToDate } from './fingerprint.ts';
import { generateScript } from './generate.ts';

const OUT = join(import.meta.dirname, '../../src/sharing/redis/scripts/limit.lua');

const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    out: { type: 'string', default: OUT },
    compiler: { type: 'string' },
  },
});
const path = relative('', values.out);

if (!values.check) {
  const script = generateScript(loadCompiler(values.compiler));
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(values.out, script);
  console.log(`${path}: ${(script.length / 1024).toFixed(0)} KiB`);
} else if (existsSync(values.out) && isUpToDate(readFileSync(values.out, 'utf8'))) {
  console.log(`${path} is up to date`);
} else {
  console.error(`${path} is out of date: run npm run lua`);
  process.exitCode = 1;
}
