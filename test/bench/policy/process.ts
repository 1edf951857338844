/** One part in this process: what is to be measured comes as an argument in JSON, and so do its figures as output. */
import type { Part } from './parts.ts';
import { measure } from './parts.ts';

const part = JSON.parse(process.argv[2] ?? '') as Part;
process.stdout.write(JSON.stringify(await measure(part)));
