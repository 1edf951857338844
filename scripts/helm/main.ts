// Writes the files of the Helm chart that follow from values.yaml, the configuration's schema, the alerts and the dashboard.
//
//   npm run helm [-- --check]
//
//   --check   writes nothing; exits with 1 if a file is out of date

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { CHART, generateChartFiles } from './chart-files.ts';

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });

for (const [name, text] of generateChartFiles()) {
  const path = join(CHART, name);
  const shown = relative('', path);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) {
    console.log(`${shown} is up to date`);
  } else if (values.check) {
    console.error(`${shown} is out of date: run npm run helm`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, text);
    console.log(`${shown}: ${(text.length / 1024).toFixed(0)} KiB`);
  }
}
