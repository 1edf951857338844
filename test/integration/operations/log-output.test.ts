import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';

describe('standard output', () => {
  const log = JSON.stringify(new URL('../../../src/telemetry/log/logger.ts', import.meta.url).href);
  const output = JSON.stringify(new URL('../../../src/telemetry/log/stdout-destination.ts', import.meta.url).href);

  /** The output of a process that runs `script`, once it has ended. */
  function run(script: string): string[] {
    const source = `
      import { createLogger, flushLogger } from ${log};
      import { StdoutDestination } from ${output};
      const logger = createLogger({ level: 'info', destination: new StdoutDestination(1e6) });
      ${script}`;
    const written = execFileSync(process.execPath, ['--input-type=module', '--eval', source], { encoding: 'utf8' });
    return written.split('\n').filter((line) => line !== '');
  }

  // reallyExit runs no exit handlers: only earlier writes appear.
  test('has every line after flush', () => {
    expect(
      run('for (let n = 0; n < 1000; n += 1) logger.info({ n }); await flushLogger(logger); process.reallyExit(0);'),
    ).toHaveLength(1000);
  });

  test('has every line when the process ends by itself or by process.exit', () => {
    expect(run("logger.info('one');")).toHaveLength(1);
    expect(run("logger.info('one'); process.exit(0);")).toHaveLength(1);
  });

  test('has whole lines when several processes write them', () => {
    // Longer in bytes than in characters.
    const script = `
      import { StdoutDestination } from ${output};
      const out = new StdoutDestination(1e8, true);
      for (let n = 0; n < 4000; n += 1) out.write('<' + 'ö'.repeat((n * 37) % 400) + '>\\n');`;
    const folder = mkdtempSync(join(tmpdir(), 'tidegate-log-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'write.mjs'), script);
    const several = '"$0" write.mjs & "$0" write.mjs & "$0" write.mjs & wait';
    const slowly = `(${several}) | dd bs=512 status=none`;
    const written = execFileSync('sh', ['-c', slowly, process.execPath], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    const lines = written.trimEnd().split('\n');
    expect(lines).toHaveLength(12_000);
    expect(lines.filter((line) => !/^<ö*>$/.test(line))).toEqual([]);
  });

  test('has each line soon, even if there are few', () => {
    const lines = run("logger.info('one'); setTimeout(() => process.reallyExit(0), 2000);");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^\{"level":"info","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","msg":"one"\}$/);
  });
});
