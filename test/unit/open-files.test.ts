import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { descriptorLimit } from '../../src/http/overload/open-file-limit.ts';
import { fitDescriptors } from '../../src/core/overload/descriptor-capacity.ts';

describe('how many files may be open', () => {
  const told = (text: string): number | undefined => {
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'limits'), text);
    return descriptorLimit(join(folder, 'limits'));
  };

  test('is what the kernel says, the soft limit', () => {
    const head = 'Limit                     Soft Limit           Hard Limit           Units     \n';
    expect(
      told(`${head}Max processes 1 1 processes\nMax open files            1024                 4096   files\n`),
    ).toBe(1024);
  });

  test('is not known where nobody says', () => {
    expect(told('Max open files            unlimited            unlimited            files')).toBeUndefined();
    expect(told('')).toBeUndefined();
    expect(descriptorLimit('/no/such/file')).toBeUndefined();
  });
});

describe('connections from clients', () => {
  test('are as many as configured where there are files for them', () => {
    expect(fitDescriptors(20_000, 256, 1_048_576)).toBe(20_000);
    expect(fitDescriptors(20_000, 256, 20_000 + 256 + 320)).toBe(20_000);
  });

  test('are as many as are left beside those to upstreams, or half', () => {
    expect(fitDescriptors(20_000, 256, 4096)).toBe(4096 - 256 - 320);
    expect(fitDescriptors(20_000, 10_000, 4096)).toBe((4096 - 320) / 2);
    expect(fitDescriptors(20_000, 256, 120)).toBe(45);
  });

  test('are never none', () => {
    expect(fitDescriptors(20_000, 256, 0)).toBe(1);
  });
});
