/** Reads the workflows of GitHub Actions and runs their shell steps as a runner does. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../../..');

export interface WorkflowStep {
  readonly name?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface WorkflowJob {
  readonly 'runs-on'?: string;
  readonly 'timeout-minutes'?: number;
  readonly environment?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly steps?: readonly WorkflowStep[];
}

export interface Workflow {
  readonly env?: Readonly<Record<string, string>>;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, WorkflowJob>>;
}

export function workflowText(name: string): string {
  return readFileSync(join(ROOT, '.github/workflows', name), 'utf8');
}

export function readWorkflow(name: string): Workflow {
  return parse(workflowText(name)) as Workflow;
}

export interface StepResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A runner of the shell steps of a workflow, whose jobs share a folder. */
export class ShellRunner {
  readonly #folder: string;
  readonly #scratch: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #expressions: Readonly<Record<string, string>>;
  readonly #exported = new Map<string, string>();

  /**
   * @param folder the checkout @param expressions the values of `${{ … }}` in `env`
   * @param scratch where the runner keeps its own files
   */
  constructor(folder: string, env: NodeJS.ProcessEnv, expressions: Readonly<Record<string, string>>, scratch: string) {
    this.#folder = folder;
    this.#scratch = scratch;
    this.#env = env;
    this.#expressions = expressions;
  }

  /** Runs a step with bash as a runner does. Adds what it writes to `$GITHUB_ENV` to the environment of later steps. */
  async run(workflow: Workflow, job: WorkflowJob, { run = '', env }: WorkflowStep): Promise<StepResult> {
    const script = join(this.#scratch, 'step.sh');
    const exported = join(this.#scratch, 'exported');
    writeFileSync(script, run);
    writeFileSync(exported, '');
    const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      cwd: this.#folder,
      env: {
        ...this.#env,
        ...this.#evaluate({ ...workflow.env, ...job.env, ...env }),
        ...Object.fromEntries(this.#exported),
        GITHUB_ENV: exported,
        GITHUB_OUTPUT: join(this.#scratch, 'output'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    for (const [, key = '', value = ''] of readFileSync(exported, 'utf8').matchAll(/^(\w+)=(.*)$/gm)) {
      this.#exported.set(key, value);
    }
    return { status, stdout, stderr };
  }

  #evaluate(env: Readonly<Record<string, string>>): Record<string, string> {
    const values = Object.entries(env).map(([key, value]): [string, string] => [
      key,
      value.replaceAll(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => {
        const known = this.#expressions[expression];
        if (known === undefined) throw new Error(`no value for the expression ${expression}`);
        return known;
      }),
    ]);
    return Object.fromEntries(values);
  }
}

/** A program that records its arguments and standard input, for one that needs the network. `shell` is its effect. */
export function recorderScript(log: string, shell: string): string {
  return `#!/bin/bash
input=''
case " $* " in *--password-stdin*) input=$(cat) ;; esac
printf '%s\\n' "$(basename "$0") $*\${input:+ < $input}" >> '${log}'
${shell}
`;
}
