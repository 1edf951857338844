import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { COMMAND_NAMES } from '../../../src/cli/command-names.ts';
import { run } from '../../support/proxy/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'tidegate-completion-'));
afterAll(() => rmSync(folder, { recursive: true }));

writeFileSync(join(folder, 'some file.yaml'), '');

async function writeScript(shell: string): Promise<void> {
  const { code, stdout } = await run(['completion', shell]);
  expect(code).toBe(0);
  writeFileSync(join(folder, shell), stdout);
}

const SHELLS: Readonly<Record<string, { readonly command: string; readonly setUp: string }>> = {
  bash: { command: 'bash --norc --noprofile -i', setUp: 'source ./bash' },
  zsh: { command: 'zsh -f -i', setUp: 'autoload -U compinit; compinit -u -D; source ./zsh' },
};

/** `tidegate` prints its arguments here, so the output shows to what a line was completed. */
const PROGRAM = `PS1='ready> '; tidegate() { printf '<%s>' "$@"; echo; }`;

const LINES = [
  ['doc\t', '<doctor>'],
  ['che\tso\t', '<check><some file.yaml>'],
  ['--log-level de\t', '<--log-level><debug>'],
  ['serve --config so\t', '<serve><--config><some file.yaml>'],
  ['serve --config=so\t', '<serve><--config=some file.yaml>'],
  ['lab fit --lim\t', '<lab><fit><--limit>'],
  ['doctor --jso\t', '<doctor><--json>'],
  ['deliveries ret\t', '<deliveries><retry>'],
  ['deliveries list --state unk\t', '<deliveries><list><--state><unknown>'],
  ['keys --admin 127.0.0.1:9901 for\t', '<keys><--admin><127.0.0.1:9901><forget>'],
  ['backoff full-\t', '<backoff><full-jitter>'],
  ['simulate thundering\t', '<simulate><thundering>'],
  ['simulate million\t', '<simulate><million-clients>'],
  ['completion zs\t', '<completion><zsh>'],
] as const;

/** Types the lines into an interactive shell. Resolves with its output when the shell has ended. */
async function type(shell: string, lines: readonly string[]): Promise<string> {
  const { command = '', setUp = '' } = SHELLS[shell] ?? {};
  writeFileSync(join(folder, 'set-up'), `${PROGRAM}\n${setUp}\n`);
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], TERM: 'dumb', HOME: folder },
  });
  let output = '';
  const pending = ['source ./set-up', ...lines.map((line) => `tidegate ${line}`), 'exit'];
  const typeNext = (): void => {
    const line = pending.shift();
    if (line !== undefined) child.stdin.write(`${line}\n`);
  };
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    // One line at a time: a shell that runs a command discards what is typed meanwhile.
    const prompts = output.split(/^\r?(?:.*\r)?ready> /m).length - 1;
    for (; seen < prompts; seen += 1) typeNext();
  });
  typeNext();
  await new Promise((resolve) => child.on('close', resolve));
  return output;
}

test.each(['bash', 'zsh'])(
  '%s completes commands, options, their values, actions and files',
  async (shell) => {
    await writeScript(shell);
    const output = await type(
      shell,
      LINES.map(([line]) => line),
    );
    const completed = output.match(/^<.*>/gm) ?? [];
    expect(completed, output).toEqual(LINES.map(([, words]) => words));
  },
  60_000,
);

test('fish offers all commands, and the options, values, actions and files of each', async () => {
  await writeScript('fish');
  const offered = (line: string): string[] => {
    const command = 'source ./fish; complete -C $argv[1]';
    const env = { PATH: process.env['PATH'], HOME: folder };
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', command, `tidegate ${line}`], {
      ...{ cwd: folder, env, encoding: 'utf8' },
    });
    expect(stderr).toBe('');
    return stdout.split('\n').flatMap((text) => (text === '' ? [] : [text.split('\t')[0] ?? '']));
  };

  expect(new Set(offered(''))).toEqual(new Set(COMMAND_NAMES));
  expect(offered('deliveries ret')).toEqual(['retry']);
  expect(offered('deliveries list --state unk')).toEqual(['unknown']);
  expect(offered('serve --conf')).toEqual(['--config']);
  expect(offered('--log-level de')).toEqual(['debug']);
  expect(offered('check so')).toEqual(['some file.yaml']);
  expect(offered('backoff full-')).toEqual(['full-jitter']);
  expect(offered('keys forg')).toEqual(['forget']);
});

test('the man page has every command, and mandoc finds no error in it', async () => {
  const { code, stdout } = await run(['man']);
  expect(code).toBe(0);
  const page = join(folder, 'tidegate.1');
  writeFileSync(page, stdout);
  const lint = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', page], { encoding: 'utf8' });
  // Without a date, so that equal versions have equal pages.
  expect(lint.stdout.trim()).toBe(`mandoc: ${page}:1:16: WARNING: missing date, using "": TH`);
  // Bold letters are written twice, with a backspace between them.
  const text = spawnSync('mandoc', ['-T', 'utf8', '-O', 'width=200', page], { encoding: 'utf8' })
    .stdout.split('\b')
    .reduce((before, after) => before.slice(0, -1) + after);
  for (const name of COMMAND_NAMES) expect(text).toMatch(new RegExp(`^ +tidegate \\[?${name}`, 'm'));
  expect(text).toContain('--table N,N,…');
  expect(text).toContain('# yaml-language-server: $schema=tidegate.schema.json');
});
