#!/usr/bin/env node
/** The command line. The only place that ends the process. */
import { isatty } from 'node:tty';
import type { Options } from 'close-with-grace';
import closeWithGrace from 'close-with-grace';
import type { Command } from './cli/parse-arguments.ts';
import { readFile } from './cli/read-file.ts';
import { keepCompiled, openCompileCache } from './process/compile-cache.ts';
import { WORKER } from './process/cluster/worker-argument.ts';
import { tuneCollector } from './process/tune-garbage-collector.ts';
import type { Millis } from './core/exchange/attempt-outcome.ts';
import { readVersion } from './process/version.ts';

/** Beyond the drain's own time: for the last lines of the log, and then it ends in any case. */
const GRACE: Millis = 2000;
const ECHO: Millis = 500;
/** As config/schema has it. */
const DEFAULT_ADMIN = '127.0.0.1:9901';
/** After the first requests, which compile what was not compiled before; soon, as nobody knows how the process will end. */
const KEEP_COMPILED: Millis = 1000;

// Whoever reads our output may stop: `tidegate schema | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

// Before whatever is to come from it: all that follows is imported where it is needed, and nothing else is.
const cache = openCompileCache(process.env);
const version = readVersion();
if (process.argv[2] === WORKER && process.send !== undefined) await runWorker();
const { parseArguments } = await import('./cli/parse-arguments.ts');
const command = parseArguments(process.argv.slice(2));
if (command.kind === 'usage-error') fail(`${command.message}; tidegate help lists what there is`, 2);
await run(command);

async function run(command: Command): Promise<void> {
  switch (command.kind) {
    case 'serve':
      return runServe(command);
    case 'demo':
      return runDemo(command);
    case 'check': {
      const { check } = await import('./cli/check/check-command.ts');
      const { text, exitCode } = check(command.file, { env: process.env, readFile });
      (exitCode === 0 ? process.stdout : process.stderr).write(text);
      process.exitCode = exitCode;
      return;
    }
    case 'diff': {
      const { diff } = await import('./cli/diff-command.ts');
      const { text, exitCode } = diff(command.before, command.after, command.json, { env: process.env, readFile });
      (exitCode === 2 ? process.stderr : process.stdout).write(text);
      process.exitCode = exitCode;
      return;
    }
    case 'schema': {
      const { jsonSchema } = await import('./config/schema/json-schema.ts');
      return print(JSON.stringify(jsonSchema(), null, 2));
    }
    case 'explain':
      return runExplain(command);
    case 'backoff':
      return runBackoff(command);
    case 'lab':
      return runLab(command);
    case 'top':
      return runTop(command);
    case 'simulate-list': {
      const { listScenarios } = await import('./cli/bundled-scenarios.ts');
      return print(listScenarios({ env: process.env, readFile }).trimEnd());
    }
    case 'simulate':
      return simulate(command);
    case 'help': {
      const { helpText } = await import('./cli/help.ts');
      return print(helpText(command.topic).trimEnd());
    }
    case 'version':
      return print(version);
  }
}

async function runServe({ flags }: Extract<Command, { kind: 'serve' }>): Promise<void> {
  tuneCollector();
  const [{ serve }, { flush }] = await Promise.all([
    import('./cli/serve-command.ts'),
    import('./telemetry/log/logger.ts'),
  ]);
  const served = await serve(flags, process.env, version);
  if (served.kind === 'failed') return fail(served.message, served.exitCode);
  const { app, config, logger, watch } = served;
  const { refused } = cache;
  if (refused !== undefined) logger.warn({ refused }, 'TIDEGATE_CACHE cannot be used: starts take longer');
  setTimeout(keepCompiled, KEEP_COMPILED).unref();
  const { delay, timeout } = config.drain;
  let isEnding = false;
  const hungUp = followHangUps(async () => {
    if (isEnding) return;
    await app.reload();
    watch.follow();
  });
  const grace: Options = { delay: delay + timeout + GRACE, logger: false, skip: ['SIGHUP'] };
  const { close } = closeWithGrace(grace, async ({ signal = 'SIGHUP', err }) => {
    isEnding = true;
    forgiveEcho();
    watch.close();
    if (err === undefined) {
      logger.info({ signal }, 'draining');
      // Nobody routes to a terminal: there is no balancer to wait for.
      await app.drain(signal === 'SIGINT' || signal === 'SIGHUP' ? 0 : delay);
      logger.info('stopped');
    } else {
      logger.fatal({ err }, 'a fault of this program: it ends, because what it knows can no longer be trusted');
    }
    await flush(logger);
  });
  void hungUp.then(close);
}

/**
 * SIGHUP has two meanings: to a service, to read its configuration again; and that the terminal has gone it was started from.
 * Resolves with the second.
 */
function followHangUps(reload: () => Promise<void>): Promise<void> {
  const hasTerminal = isatty(0);
  return new Promise((resolve) => {
    process.on('SIGHUP', () => {
      if (hasTerminal && !isatty(0)) resolve();
      else void reload();
    });
  });
}

/** One of several processes that serve: its primary says when it begins and when it ends. */
async function runWorker(): Promise<never> {
  tuneCollector();
  // A terminal, and many who stop services, signal every process of a group: the primary sees to it.
  const ignore = (): void => undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const) process.on(signal, ignore);
  const { work: startWork } = await import('./process/cluster/worker.ts');
  const { flush } = await import('./telemetry/log/logger.ts');
  const work = await startWork();
  if (work === undefined) process.exit(1);
  const { logger } = work;
  const fail = async (err: unknown): Promise<void> => {
    logger.fatal({ err }, 'a fault of this program: this worker ends, because what it knows can no longer be trusted');
    await flush(logger);
    process.exit(1);
  };
  process.on('uncaughtException', (err) => void fail(err));
  process.on('unhandledRejection', (err) => void fail(err));
  await work.end(await work.over);
  await flush(logger);
  process.exit(0);
}

async function runDemo({ flags }: Extract<Command, { kind: 'demo' }>): Promise<void> {
  const { startDemo } = await import('./cli/demo-command.ts');
  const demo = await startDemo(flags, version, print);
  if (demo.kind === 'failed') return fail(demo.message, 1);
  closeWithGrace({ delay: 5000, logger: false }, () => {
    forgiveEcho();
    return demo.stop();
  });
}

/**
 * One Ctrl-C under npm comes twice within a millisecond, from the terminal and from npm: the echo is not a second wish.
 * (close-with-grace 2.5.0 ends the process at any second signal, and has put up its listeners for it by now.)
 */
function forgiveEcho(): void {
  const insist = process.listeners('SIGINT');
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  for (const listener of insist) process.off('SIGINT', listener);
  setTimeout(() => {
    for (const listener of insist) process.on('SIGINT', listener);
    process.off('SIGINT', ignore);
  }, ECHO).unref();
}

async function runBackoff(command: Extract<Command, { kind: 'backoff' }>): Promise<void> {
  const { runBackoff: run } = await import('./cli/backoff/backoff-command.ts');
  const told = run(command, process.stdout.columns ?? 80);
  if (told.kind === 'failed') return fail(told.message, 2);
  process.stdout.write(told.text);
  process.stderr.write(told.remarks);
  await draw(command.svg, told.draw);
}

async function runLab(command: Extract<Command, { kind: 'lab' }>): Promise<void> {
  const stop = new AbortController();
  // A second one ends it as ever, but for the echo of the first.
  process.once('SIGINT', () => {
    stop.abort();
    forgiveEcho();
  });
  const { runLab: run } = await import('./laboratory/commands/lab-command.ts');
  const { stderr } = process;
  const terminal = stderr.isTTY
    ? { write: (text: string) => void stderr.write(text), columns: stderr.columns || 80 }
    : undefined;
  const ran = await run(command, { signal: stop.signal, terminal, surroundings: { env: process.env, readFile } });
  if (ran.kind === 'failed') return fail(ran.message, ran.exitCode);
  // First what has taken long to come to: a file that cannot be written ends it all.
  process.stdout.write(ran.text);
  process.stderr.write(ran.remarks);
  process.exitCode = ran.exitCode;
  await draw(command.svg, ran.draw);
}

/** Into the file of `--svg`, where there is one. */
async function draw(file: string | undefined, make: (() => string) | undefined): Promise<void> {
  if (file === undefined || make === undefined) return;
  const { writeFile } = await import('./cli/write-file.ts');
  const refusal = writeFile(file, make());
  if (refusal !== undefined) fail(refusal, 1);
}

async function runExplain({ id, admin, token, json }: Extract<Command, { kind: 'explain' }>): Promise<void> {
  const { explainRequest } = await import('./cli/explain-command.ts');
  const { TIDEGATE_ADMIN, TIDEGATE_ADMIN_TOKEN } = process.env;
  const explained = await explainRequest({
    id,
    admin: admin ?? TIDEGATE_ADMIN,
    token: token ?? TIDEGATE_ADMIN_TOKEN,
    json,
    width: process.stdout.columns ?? 80,
  });
  if (explained.kind === 'failed') return fail(explained.message, explained.exitCode);
  process.stdout.write(explained.text);
}

async function simulate({ svg, ...options }: Extract<Command, { kind: 'simulate' }>): Promise<void> {
  const { runSimulate } = await import('./cli/simulate-command.ts');
  const { columns } = process.stdout;
  const ran = runSimulate({ ...options, width: columns ?? 80 }, { env: process.env, readFile });
  if (ran.kind === 'failed') return fail(ran.message, ran.exitCode);
  await draw(svg, ran.draw);
  process.stdout.write(ran.text);
  process.stderr.write(ran.remarks);
  process.exitCode = ran.exitCode;
}

async function runTop({ admin, token, once }: Extract<Command, { kind: 'top' }>): Promise<void> {
  const [{ top }, { readAdminUrl }] = await Promise.all([
    import('./cli/top/top-command.ts'),
    import('./cli/top/admin-url.ts'),
  ]);
  const { env, stdout: output, stdin: input } = process;
  const address = readAdminUrl(admin ?? (env['TIDEGATE_ADMIN'] || DEFAULT_ADMIN));
  if (!address.ok) return fail(address.message, 2);
  const ended = await top({
    url: address.url,
    token: token ?? (env['TIDEGATE_ADMIN_TOKEN'] || undefined),
    once,
    colour: !env['NO_COLOR'],
    output,
    input,
    random: Math.random,
  });
  if (ended.kind === 'failed') fail(ended.message, 1);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(message: string, exitCode: 1 | 2): never {
  process.stderr.write(message.includes('\n') ? `${message}\n` : `tidegate: ${message}\n`);
  process.exit(exitCode);
}
