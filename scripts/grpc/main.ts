// Writes the messages of Envoy's services, from the protocol definitions in scripts/grpc/protos.
//
//   npm run protos [-- --check]
//
//   --check   writes nothing; exits with 1 if the file is not what the definitions generate

import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { makeDescriptor } from './descriptor.ts';

const OUT = join(import.meta.dirname, '../../src/http/ext-authz/grpc/envoy-api.json');
const path = relative('', OUT);

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const descriptor = makeDescriptor();
if (!values.check) {
  writeFileSync(OUT, descriptor);
  console.log(`${path}: ${(descriptor.length / 1024).toFixed(0)} KiB`);
} else if (readFileSync(OUT, 'utf8') === descriptor) {
  console.log(`${path} is up to date`);
} else {
  console.error(`${path} is out of date: run npm run protos`);
  process.exitCode = 1;
}
