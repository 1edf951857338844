/** Runs one measurement in this process: takes the part as a JSON argument, and prints its figures as JSON. */
import type { Part } from './parts.ts';
import { measure } from './parts.ts';

const part = JSON.parse(process.argv[2] ?? '') as Part;
process.stdout.write(JSON.stringify(await measure(part)));
