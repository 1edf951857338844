import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { freePort } from '../../support/free-port.ts';

const COUNT = 300;
const MODULE = new URL('../../support/free-port.ts', import.meta.url).href;
/** Prints ports. */
const DRAW = `
  const { freePort } = await import(${JSON.stringify(MODULE)});
  const ports = await Promise.all(Array.from({ length: ${COUNT} }, () => freePort()));
  console.log(JSON.stringify(ports));`;

test('a free port is returned once, in all processes of the tests', async () => {
  const own = await Promise.all(Array.from({ length: COUNT }, () => freePort()));
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', DRAW]);
  const others = JSON.parse(stdout) as number[];
  expect(new Set([...own, ...others]).size).toBe(2 * COUNT);
});
