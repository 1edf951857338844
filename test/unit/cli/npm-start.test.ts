import { describe, expect, test } from 'vitest';
import {
  addPracticeConfig,
  describeRemovedOptions,
  describeUsageError,
  formatOptions,
  OPTIONS_WITH_VALUE,
  OPTIONS_WITHOUT_VALUE,
} from '../../../src/cli/npm-start.ts';
import { COMMAND_OPTIONS } from '../../../src/cli/parse-arguments.ts';

const NPM_START = { npm_lifecycle_event: 'start', npm_package_name: 'tidegate', npm_execpath: '/npm-cli.js' };

describe('the command to type', () => {
  const hint = (env: Parameters<typeof describeUsageError>[1], command?: string): string =>
    describeUsageError({ kind: 'usage-error', message: 'wrong', ...(command === undefined ? {} : { command }) }, env);

  test('is npm start -- under npm start, and tidegate elsewhere', () => {
    expect(hint(NPM_START, 'serve')).toBe('wrong; run npm start -- help serve for usage');
    expect(hint(NPM_START)).toBe('wrong; run npm start -- help for usage');
    expect(formatOptions('--admin 1', NPM_START)).toBe('npm start -- --admin 1');
    for (const env of [
      {},
      { ...NPM_START, npm_lifecycle_event: 'serve' },
      { ...NPM_START, npm_package_name: 'shop' },
    ]) {
      expect(hint(env, 'serve')).toBe('wrong; run tidegate help serve for usage');
      expect(formatOptions('--admin 1', env)).toBe('--admin 1');
    }
  });
});

describe('npm start', () => {
  const practice = ['--config', 'config/practice.yaml'];

  test.each([[''], ['serve'], ['--listen 1'], ['serve --admin=2 --log-level debug']])(
    "serves the practice config with '%s'",
    (line) => {
      const args = line.split(' ').filter((word) => word !== '');
      expect(addPracticeConfig(args, {})).toEqual([...args, ...practice]);
      expect(addPracticeConfig(args, { TIDEGATE_UPSTREAM: 'http://a' })).toEqual(args);
      expect(addPracticeConfig(args, { TIDEGATE_CONFIG: 'a.yaml' })).toEqual(args);
    },
  );

  test.each([['--config a.yaml'], ['serve --upstream=http://a'], ['check a.yaml'], ['demo'], ['a.yaml']])(
    "adds nothing to '%s'",
    (line) => {
      expect(addPracticeConfig(line.split(' '), {})).toEqual(line.split(' '));
    },
  );

  test.each([
    ['a.yaml', { config: 'true' }, '--config', '--config a.yaml'],
    ['serve 3000', { listen: 'true' }, '--listen', 'serve --listen 3000'],
    ['', { listen: '3000' }, '--listen', '--listen=3000'],
    ['check a.yaml', { full: 'true' }, '--full', 'check a.yaml --full'],
    ['ip 3', { client_key: 'true', admin: 'true' }, '--admin and --client-key', '--admin … --client-key …'],
  ])("names the options that npm removed from '%s' %j", (line, taken, names, meant) => {
    const variables = Object.fromEntries(Object.entries(taken).map(([name, value]) => [`npm_config_${name}`, value]));
    const args = line.split(' ').filter((word) => word !== '');
    expect(describeRemovedOptions(args, { ...NPM_START, ...variables })).toBe(
      `npm has removed ${names}: put -- before the options: npm start -- ${meant}`,
    );
    expect(describeRemovedOptions(args, variables), 'elsewhere').toBeUndefined();
    expect(describeRemovedOptions(args, NPM_START)).toBeUndefined();
  });

  test('recognises the options of the commands, except those that npm has too', () => {
    const { backoff: _, ...commands } = COMMAND_OPTIONS;
    const known = new Set(Object.values(commands).flatMap((options) => Object.keys(options)));
    const shared = ['json', 'token', 'key', 'message'];
    expect(new Set([...OPTIONS_WITH_VALUE, ...OPTIONS_WITHOUT_VALUE, ...shared])).toEqual(known);
  });
});
