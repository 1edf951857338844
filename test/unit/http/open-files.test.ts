import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFileLimit } from '../../../src/http/overload/open-file-limit.ts';
import { capByDescriptors } from '../../../src/core/overload/descriptor-capacity.ts';

describe('the limit on open files', () => {
  const limitOf = (text: string): number | undefined => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'limits'), text);
    return openFileLimit(join(folder, 'limits'));
  };

  test('is the soft limit of the kernel', () => {
    const head = 'Limit                     Soft Limit           Hard Limit           Units     \n';
    expect(
      limitOf(`${head}Max processes 1 1 processes\nMax open files            1024                 4096   files\n`),
    ).toBe(1024);
  });

  test('is unknown if it cannot be read', () => {
    expect(limitOf('Max open files            unlimited            unlimited            files')).toBeUndefined();
    expect(limitOf('')).toBeUndefined();
    expect(openFileLimit('/no/such/file')).toBeUndefined();
  });
});

describe('connections from clients', () => {
  test('are as many as configured if the file limit allows', () => {
    expect(capByDescriptors(20_000, 256, 1_048_576)).toBe(20_000);
    expect(capByDescriptors(20_000, 256, 20_000 + 256 + 320)).toBe(20_000);
  });

  test('are as many as remain beside those to upstreams, or half', () => {
    expect(capByDescriptors(20_000, 256, 4096)).toBe(4096 - 256 - 320);
    expect(capByDescriptors(20_000, 10_000, 4096)).toBe((4096 - 320) / 2);
    expect(capByDescriptors(20_000, 256, 120)).toBe(45);
  });

  test('are at least one', () => {
    expect(capByDescriptors(20_000, 256, 0)).toBe(1);
  });
});
