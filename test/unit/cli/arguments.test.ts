import { describe, expect, test } from 'vitest';
import { strategyNames } from '../../../src/core/backoff/strategies.ts';
import { COMMAND_OPTIONS, parseArguments } from '../../../src/cli/parse-arguments.ts';
import type { CommandName } from '../../../src/cli/command-names.ts';
import { COMMAND_NAMES } from '../../../src/cli/command-names.ts';
import { COMMAND_DESCRIPTIONS } from '../../../src/cli/help/command-descriptions.ts';
import { helpText } from '../../../src/cli/help/help-text.ts';

/** Arguments as typed in a shell. */
function typed(line: string): unknown {
  return parseArguments(line.split(' ').filter((word) => word !== ''));
}

function refusal(line: string): string {
  const command = parseArguments(line.split(' '));
  return command.kind === 'usage-error' ? command.message : `understood as ${command.kind}`;
}

describe('serve', () => {
  const nothing = {
    config: undefined,
    upstream: undefined,
    listen: undefined,
    admin: undefined,
    clientKey: undefined,
    logLevel: undefined,
  };

  test('is the default command', () => {
    expect(typed('')).toEqual({ kind: 'serve', flags: nothing });
    expect(typed('serve')).toEqual({ kind: 'serve', flags: nothing });
    expect(typed('--upstream https://a')).toEqual({ kind: 'serve', flags: { ...nothing, upstream: 'https://a' } });
  });

  test('accepts flags with a space or with =', () => {
    expect(
      typed(
        'serve --config=a.yaml --upstream http://b --listen [::]:1 --admin false --client-key header:x,ip --log-level warn',
      ),
    ).toEqual({
      kind: 'serve',
      flags: {
        config: 'a.yaml',
        upstream: 'http://b',
        listen: '[::]:1',
        admin: 'false',
        clientKey: 'header:x,ip',
        logLevel: 'warn',
      },
    });
    expect(typed('--config=-odd-.yaml')).toMatchObject({ flags: { config: '-odd-.yaml' } });
  });

  test('rejects a file or a word without an option', () => {
    expect(refusal('serve a.yaml')).toBe("serve takes no 'a.yaml' (did you mean --config a.yaml?)");
    expect(refusal('serve now')).toBe("serve takes no 'now'");
  });
});

describe('simulate', () => {
  const nothing = { kind: 'simulate', scenario: 'open', seed: undefined, json: false, svg: undefined, check: false };

  test('accepts one file or name', () => {
    expect(typed('simulate open')).toEqual(nothing);
    expect(typed('simulate open --seed 7 --json --svg a.svg --check')).toEqual({
      ...nothing,
      seed: 7,
      json: true,
      svg: 'a.svg',
      check: true,
    });
    expect(typed('simulate --list')).toEqual({ kind: 'simulate-list' });
    expect(refusal('simulate')).toBe('simulate needs a FILE or a NAME; --list shows the names');
    expect(refusal('simulate a b')).toBe('simulate takes one FILE or NAME');
    expect(refusal('simulate a --list')).toBe("simulate --list takes no 'a'");
  });

  test.each(['-1', '1.5', 'x', '99999999999999999'])('rejects seed %s', (seed) => {
    expect(refusal(`simulate open --seed=${seed}`)).toBe('--seed: expected a whole number from 0');
  });
});

describe('diff', () => {
  test('accepts two files, the one in effect first', () => {
    expect(typed('diff a.yaml b.yaml')).toEqual({ kind: 'diff', before: 'a.yaml', after: 'b.yaml', json: false });
    expect(typed('diff a.yaml b.yaml --json')).toMatchObject({ json: true });
    expect(refusal('diff a.yaml')).toBe('diff needs two files: OLD NEW');
    expect(refusal('diff a b c')).toBe('diff takes two files: OLD NEW');
  });
});

describe('check', () => {
  test('accepts one file', () => {
    expect(typed('check a.yaml')).toEqual({ kind: 'check', file: 'a.yaml', full: false, probe: false });
    expect(typed('check --full a.yaml --probe')).toEqual({ kind: 'check', file: 'a.yaml', full: true, probe: true });
    expect(refusal('check')).toBe('check needs a FILE');
    expect(refusal('check a b')).toBe('check takes one FILE');
  });
});

describe('backoff', () => {
  test('accepts strategies and options, in the units of the configuration', () => {
    expect(
      typed('backoff full-jitter sip --base 50ms --multiplier 1.5 --max 2s --jitter 0.2 --attempts 7 --json'),
    ).toEqual({
      kind: 'backoff',
      names: ['full-jitter', 'sip'],
      options: { baseInterval: 50, multiplier: 1.5, maxInterval: 2000, jitter: 0.2 },
      attempts: 7,
      json: true,
      svg: undefined,
    });
    expect(typed('backoff table polynomial --table 1,20 --slot 5ms --exponent 1.5 --svg a.svg')).toMatchObject({
      options: { table: [1, 20], slot: 5, exponent: 1.5 },
      svg: 'a.svg',
    });
    expect(typed('backoff')).toEqual({
      kind: 'backoff',
      names: [],
      options: {},
      attempts: undefined,
      json: false,
      svg: undefined,
    });
  });

  test('accepts a jitter that is a part of the delay, or a duration that is added to it', () => {
    expect(typed('backoff grpc --jitter 1')).toMatchObject({ options: { jitter: 1 } });
    expect(typed('backoff additive-jitter --jitter 100ms')).toMatchObject({ options: { jitterInterval: 100 } });
  });

  test('rejects an unknown strategy and an invalid value in one line', () => {
    expect(refusal('backoff ful-jitter')).toBe("no strategy is called 'ful-jitter' (did you mean full-jitter?)");
    expect(refusal('backoff zigzag')).toBe(
      `no strategy is called 'zigzag'; there are ${strategyNames.slice(0, -1).join(', ')} and envoy`,
    );
    expect(refusal('backoff sip --base -1')).toBe('--base: a duration cannot be negative');
    expect(refusal('backoff sip --max=-5s')).toBe('--max: a duration cannot be negative');
    expect(refusal('backoff sip --attempts -1')).toBe('--attempts: expected a whole number from 1 to 1000');
    expect(refusal('backoff sip --multiplier -.5')).toBe('--multiplier: expected a number from 1');
    expect(refusal('backoff sip --base --json')).toBe('--base needs a value');
    expect(refusal('backoff sip --base 100')).toBe(
      '--base: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 100ms or 100s?)',
    );
    expect(refusal('backoff sip --multiplier 0.5')).toBe('--multiplier: expected a number from 1');
    expect(refusal('backoff sip --jitter 1.5')).toBe(
      '--jitter: expected a part from 0 to 1, or a duration such as 100ms',
    );
    expect(refusal('backoff sip --exponent 101')).toBe('--exponent: expected a number from 0 to 100');
    expect(refusal('backoff table --table 1,0')).toBe('--table: expected whole numbers from 1, such as 1,10,100,200');
    expect(refusal('backoff sip --attempts 0')).toBe('--attempts: expected a whole number from 1 to 1000');
    expect(refusal('backoff sip --attempts many')).toBe('--attempts: expected a whole number from 1 to 1000');
    expect(refusal('backoff sip --json=yes')).toBe('--json takes no value');
  });

  test('accepts 0 for a duration, as the configuration does, and a fraction without its leading 0', () => {
    expect(typed('backoff fixed --base 0 --slot 0')).toMatchObject({ options: { baseInterval: 0, slot: 0 } });
    expect(typed('backoff grpc --jitter .25')).toMatchObject({ options: { jitter: 0.25 } });
  });

  test('accepts no options without a NAME', () => {
    expect(refusal('backoff --base 5s')).toBe('backoff without a NAME lists the strategies: --base needs a NAME');
    expect(refusal('backoff --svg a.svg')).toBe('backoff without a NAME lists the strategies: --svg needs a NAME');
    expect(typed('backoff --json')).toMatchObject({ names: [], json: true });
  });
});

describe('the other commands', () => {
  test('accept only their own options', () => {
    expect(typed('schema')).toEqual({ kind: 'schema' });
    expect(typed('version')).toEqual({ kind: 'version' });
    expect(typed('--version')).toEqual({ kind: 'version' });
    expect(typed('demo --listen 127.0.0.1:1')).toEqual({
      kind: 'demo',
      flags: { listen: '127.0.0.1:1', admin: undefined },
    });
    expect(refusal('schema a')).toBe("schema takes no 'a'");
  });

  test('help exists for all, and for each', () => {
    for (const line of ['help', '--help', '-h']) expect(typed(line)).toEqual({ kind: 'help', topic: undefined });
    for (const line of ['help check', 'check --help', 'check -h a b']) {
      expect(typed(line)).toEqual({ kind: 'help', topic: 'check' });
    }
    expect(refusal('help chekc')).toBe("unknown command 'chekc' (did you mean check?)");
    for (const name of COMMAND_NAMES) {
      expect(helpText()).toContain(`\n  ${name}`);
      expect(helpText(name)).toMatch(new RegExp(`^usage: tidegate \\[?${name}`));
    }
  });
});

test('the help describes exactly the commands and the options that are parsed', () => {
  expect(Object.keys(COMMAND_DESCRIPTIONS)).toEqual(COMMAND_NAMES);
  for (const [name, options] of Object.entries(COMMAND_OPTIONS)) {
    const described = COMMAND_DESCRIPTIONS[name as CommandName].options ?? [];
    const kinds = described.map((each) => [each.name, { type: each.placeholder === undefined ? 'boolean' : 'string' }]);
    expect(Object.fromEntries(kinds), name).toEqual(options);
  }
});

describe('doctor', () => {
  test('accepts the options of serve that name a configuration or an address, and a token', () => {
    const flags = { config: undefined, upstream: undefined, listen: undefined, admin: undefined };
    expect(typed('doctor')).toEqual({ kind: 'doctor', flags, token: undefined, json: false });
    expect(typed('doctor --config a.yaml --admin 1 --token t --json')).toEqual({
      ...{ kind: 'doctor', token: 't', json: true },
      flags: { ...flags, config: 'a.yaml', admin: '1' },
    });
    expect(refusal('doctor a.yaml')).toBe("doctor takes no 'a.yaml' (did you mean --config a.yaml?)");
    expect(refusal('docter')).toBe("unknown command 'docter' (did you mean doctor?)");
  });
});

test('completion accepts one shell', () => {
  expect(typed('completion zsh')).toEqual({ kind: 'completion', shell: 'zsh' });
  for (const line of ['completion', 'completion csh', 'completion bash zsh']) {
    expect(refusal(line)).toBe('completion needs one shell: bash, zsh, fish');
  }
});

describe('keys', () => {
  const rest = { kind: 'keys', admin: undefined, token: undefined, json: false };

  test('accepts an action, an ID or a key, and the filters of a list', () => {
    expect(typed('keys list')).toMatchObject({ ...rest, action: { name: 'list', query: {} } });
    expect(typed('keys list --state open --upstream till --oldest --limit 500 --key k --json')).toMatchObject({
      action: { name: 'list', query: { state: 'open', upstream: 'till', order: 'oldest', limit: '500', key: 'k' } },
      json: true,
    });
    expect(typed('keys show 0123abcd --admin 1 --token t')).toEqual({
      ...{ ...rest, admin: '1', token: 't' },
      action: { name: 'show', which: { by: 'id', id: '0123abcd' } },
    });
    expect(typed('keys forget --key order --upstream till')).toEqual({
      ...rest,
      action: { name: 'forget', which: { by: 'key', key: 'order', upstream: 'till' } },
    });
  });

  test.each([
    ['keys', 'keys needs an action: list, show or forget'],
    ['keys lsit', "keys has no action 'lsit' (did you mean list?)"],
    ['keys list 0123abcd', "keys list takes no '0123abcd' (did you mean keys show 0123abcd?)"],
    ['keys list --state opne', '--state: expected in_progress, unresolved, answered, open (did you mean open?)'],
    ['keys list --limit 0', '--limit: expected a whole number from 1 to 500'],
    ['keys list --limit 501', '--limit: expected a whole number from 1 to 500'],
    ['keys show', 'keys show needs an ID, or --key'],
    ['keys forget a b', 'keys forget takes one ID, or --key'],
    ['keys forget a --key b', 'keys forget takes one ID, or --key'],
    ['keys forget a --upstream b', 'keys forget takes --upstream only with --key'],
    ['keys forget --key a --state open', 'keys forget takes no --state'],
    ['keys show --oldest a', 'keys show takes no --oldest'],
  ])('%s', (line, message) => expect(refusal(line)).toBe(message));
});

describe('an unknown argument gets a one-line error', () => {
  test('for a command', () => {
    expect(refusal('serv')).toBe("unknown command 'serv' (did you mean serve?)");
    expect(refusal('dance')).toBe("unknown command 'dance'");
    expect(refusal('./tidegate.yaml')).toBe(
      "unknown command './tidegate.yaml' (did you mean serve --config ./tidegate.yaml?)",
    );
    expect(refusal('contend x')).toBe("unknown command 'contend'");
  });

  test('for an option', () => {
    expect(refusal('serve --lisen a:1')).toBe('unknown option --lisen (did you mean --listen?)');
    expect(refusal('check --json a')).toBe('unknown option --json');
    expect(refusal('-x')).toBe('unknown option -x');
    expect(refusal('serve --constructor')).toBe('unknown option --constructor');
  });

  test('with the counterpart of an option or a command of other programs', () => {
    expect(refusal('--port 8080')).toBe('unknown option --port (did you mean --listen?)');
    expect(refusal('-p 8080')).toBe('unknown option -p (did you mean --listen?)');
    expect(refusal('explain a --port 1')).toBe('unknown option --port');
    expect(refusal('start')).toBe("unknown command 'start' (did you mean serve?)");
    expect(refusal('validate a.yaml')).toBe("unknown command 'validate' (did you mean check?)");
  });

  test('with the command whose help lists the options', () => {
    expect(typed('--port 8080')).toMatchObject({ command: 'serve' });
    expect(typed('check')).toMatchObject({ command: 'check' });
    expect(typed('lab fit')).toMatchObject({ command: 'lab' });
    expect(typed('dance')).not.toHaveProperty('command');
    expect(typed('help dance')).not.toHaveProperty('command');
  });

  test('with the strategy for two swapped letters, and for the names of other libraries', () => {
    expect(refusal('backoff spi')).toBe("no strategy is called 'spi' (did you mean sip?)");
    expect(refusal('backoff constant')).toBe("no strategy is called 'constant' (did you mean fixed?)");
    expect(refusal('backoff full')).toBe("no strategy is called 'full' (did you mean full-jitter?)");
    expect(refusal('backoff equal')).toBe("no strategy is called 'equal' (did you mean equal-jitter?)");
    expect(refusal('backoff geometric')).toBe("no strategy is called 'geometric' (did you mean exponential?)");
  });

  test('for an option without its value, or given twice', () => {
    expect(refusal('serve --listen')).toBe('--listen needs a value');
    expect(refusal('serve --listen --admin a:1')).toBe('--listen needs a value');
    expect(refusal('serve --listen a:1 --listen b:1')).toBe('--listen is given twice');
  });
});
