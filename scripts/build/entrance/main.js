#!/usr/bin/env node
// Starts the program if this Node can run it; see scripts/build.ts.
import { refusal } from './needed-node.js';

if (refusal === undefined) {
  // By URL, because program.js is beside this file only after the build.
  void import(new URL('program.js', import.meta.url).href);
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 2;
}
