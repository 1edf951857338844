#!/usr/bin/env node
// The program, where this Node can run it: scripts/build.ts.
import { refusal } from './needed-node.js';

if (refusal === undefined) {
  // By its address: it is beside this file once it is built, and not here.
  void import(new URL('program.js', import.meta.url).href);
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 2;
}
