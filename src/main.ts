#!/usr/bin/env node
/** The command line. The only file that ends the process. */
import closeWithGrace from 'close-with-grace';
import type { AdminCommand } from './cli/admin-command.ts';
import type { CliCommand } from './cli/parse-arguments.ts';
import { readFile } from './cli/read-file.ts';
import { saveCompileCache, openCompileCache } from './process/compile-cache.ts';
import { WORKER_ARGUMENT } from './process/cluster/worker-argument.ts';
import { closeOptions, deferReloads, STOP_SIGNALS, watchServiceSignals, watchStopSignals } from './process/signals.ts';
import { tuneNode } from './process/tune-node.ts';
import type { Millis } from './core/scalars.ts';
import { readVersion } from './process/version.ts';

/** The default of `admin` in the configuration, repeated here so that `top` need not load the schema. */
const DEFAULT_ADMIN = '127.0.0.1:9901';
/** Late enough that the first requests have compiled their code, and soon in case the process is killed. */
const SAVE_CACHE_DELAY: Millis = 1000;

// The reader of a pipe may stop early: `tidegate schema | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(`the output cannot be written: ${error.message}`, 1);
});

// The cache serves only modules that are loaded after this line, so commands are imported dynamically.
const cache = openCompileCache(process.env);
const version = readVersion();
if (process.argv[2] === WORKER_ARGUMENT && process.send !== undefined) await runWorker();
const { parseArguments } = await import('./cli/parse-arguments.ts');
const command = parseArguments(process.argv.slice(2));
if (command.kind === 'usage-error') {
  const { describeUsageError } = await import('./cli/npm-start.ts');
  fail(describeUsageError(command, process.env), 2);
}
await run(command);

async function run(command: CliCommand): Promise<void> {
  switch (command.kind) {
    case 'serve':
      return runServe(command);
    case 'demo':
      return runDemo(command);
    case 'check': {
      const { runCheck, runCheckWithProbe } = await import('./cli/check/check-command.ts');
      const run = command.probe ? runCheckWithProbe : runCheck;
      const { kind, text, exitCode } = await run(command.file, command, { env: process.env, readFile });
      return finish(kind === 'report' ? { text, remarks: '', exitCode } : { text: '', remarks: text, exitCode });
    }
    case 'diff': {
      const { runDiff } = await import('./cli/diff-command.ts');
      const { text, exitCode } = runDiff(command.before, command.after, command.json, { env: process.env, readFile });
      return finish(exitCode === 2 ? { text: '', remarks: text, exitCode } : { text, remarks: '', exitCode });
    }
    case 'clients':
      return finish((await import('./cli/clients/clients-command.ts')).runClients(command));
    case 'client-quotas':
    case 'explain':
    case 'keys':
    case 'deliveries':
      return runAdminCommand(command);
    case 'backoff':
      return runBackoff(command);
    case 'lab':
      return runLab(command);
    case 'top':
      return runTop(command);
    case 'simulate':
      return runSimulateCommand(command);
    case 'doctor': {
      const { runDoctor } = await import('./cli/doctor/doctor-command.ts');
      return finish(await runDoctor(command, { env: process.env, readFile, version, random: Math.random }));
    }
    case 'schema':
    case 'simulate-list':
    case 'completion':
    case 'man':
    case 'help':
    case 'version': {
      const { commandText } = await import('./cli/text-command.ts');
      process.stdout.write(await commandText(command, version, { env: process.env, readFile }));
    }
  }
}

async function runServe({ flags }: Extract<CliCommand, { kind: 'serve' }>): Promise<void> {
  tuneNode();
  const reloads = deferReloads();
  const [{ serve, announceSecondCtrlC }, { flushLogger }] = await Promise.all([
    import('./cli/serve-command.ts'),
    import('./telemetry/log/logger.ts'),
  ]);
  const served = await serve(flags, process.env, version);
  if (served.kind === 'failed') return fail(served.message, served.exitCode);
  const { app, config, logger, watch, drainRequested, reportReady, onStopping } = served;
  if (cache.refused) logger.warn({ refused: cache.refused }, 'TIDEGATE_CACHE cannot be used: starts take longer');
  setTimeout(saveCompileCache, SAVE_CACHE_DELAY).unref();
  const { delay, timeout } = config.drain;
  let isStopping = false;
  /** Undefined for an order of the admin API, which drains as SIGTERM does. */
  let signal: NodeJS.Signals | undefined;
  const { close } = closeWithGrace(closeOptions(delay + timeout), async ({ err }) => {
    isStopping = true;
    onStopping(delay + timeout);
    if (err === undefined) {
      logger.info({ signal }, 'draining');
      // A process in a terminal has no load balancer that must first notice the drain.
      await app.drain(signal === 'SIGINT' || signal === 'SIGHUP' ? 0 : delay);
      logger.info('stopped');
    } else {
      logger.fatal({ err }, 'internal error: the process exits because its state can no longer be trusted');
    }
    await flushLogger(logger);
  });
  const startDrain = (cause?: NodeJS.Signals): void => {
    if (isStopping) return;
    signal = cause;
    close();
  };
  // Nothing is awaited from the start to here: a signal that arrives in between would not start the drain.
  const reload = async (): Promise<void> => {
    if (isStopping) return;
    await app.reload();
    watch.refresh();
  };
  watchServiceSignals(logger, { reload, drain: startDrain, exit: () => process.exit(1) });
  if (reloads.end()) void reload();
  void drainRequested.then(() => startDrain());
  reportReady();
  announceSecondCtrlC(timeout);
  if (app.practice !== undefined && process.stdout.isTTY) {
    const { formatGreeting } = await import('./cli/greeting.ts');
    process.stderr.write(formatGreeting(app.url, app.adminUrl));
  }
}

/** Runs a worker process. Its primary starts it and ends it. */
async function runWorker(): Promise<never> {
  tuneNode();
  // Terminals and service managers signal the whole process group. The primary handles the signal for its workers.
  for (const signal of STOP_SIGNALS) process.on(signal, () => undefined);
  const { startWorker } = await import('./process/cluster/worker.ts');
  const { flushLogger } = await import('./telemetry/log/logger.ts');
  const worker = await startWorker();
  if (worker === undefined) process.exit(1);
  const { logger } = worker;
  const fail = async (err: unknown): Promise<void> => {
    logger.fatal({ err }, 'internal error: this worker exits because its state can no longer be trusted');
    await flushLogger(logger);
    process.exit(1);
  };
  process.on('uncaughtException', (err) => void fail(err));
  process.on('unhandledRejection', (err) => void fail(err));
  await worker.end(await worker.shutdown);
  await flushLogger(logger);
  process.exit(0);
}

async function runDemo({ flags }: Extract<CliCommand, { kind: 'demo' }>): Promise<void> {
  const { startDemo } = await import('./cli/demo-command.ts');
  const demo = await startDemo(flags, version, print);
  if (demo.kind === 'failed') return fail(demo.message, 1);
  const { close } = closeWithGrace(closeOptions(3000), demo.stop);
  watchStopSignals({ onFirst: close, onSecond: () => process.exit(1) });
}

async function runBackoff(command: Extract<CliCommand, { kind: 'backoff' }>): Promise<void> {
  const { runBackoff: run } = await import('./cli/backoff/backoff-command.ts');
  const result = run(command, process.stdout.columns ?? 80);
  if (result.kind === 'failed') return fail(result.message, 2);
  process.stdout.write(result.text);
  process.stderr.write(result.remarks);
  await writeSvg(command.svg, result.draw);
}

async function runLab(command: Extract<CliCommand, { kind: 'lab' }>): Promise<void> {
  const stop = new AbortController();
  watchStopSignals({ onFirst: () => stop.abort(), onSecond: () => process.exit(130) }, ['SIGINT']);
  const { runLab: run } = await import('./laboratory/commands/lab-command.ts');
  const { stderr } = process;
  const terminal = stderr.isTTY
    ? { write: (text: string) => void stderr.write(text), columns: stderr.columns || 80 }
    : undefined;
  const result = await run(command, { signal: stop.signal, terminal, environment: { env: process.env, readFile } });
  if (result.kind === 'failed') return fail(result.message, result.exitCode);
  // The result comes first: it took long to compute, and a file that cannot be written ends the process.
  finish(result);
  await writeSvg(command.svg, result.draw);
}

/** Writes the drawing to the file of `--svg`, if one is given. */
async function writeSvg(file: string | undefined, render: (() => string) | undefined): Promise<void> {
  if (file === undefined || render === undefined) return;
  const { writeFile } = await import('./cli/write-file.ts');
  const problem = writeFile(file, render());
  if (problem !== undefined) fail(problem, 1);
}

async function runAdminCommand(command: AdminCommand): Promise<void> {
  const { runAdminCommand: run } = await import('./cli/admin-command.ts');
  const { stdout } = process;
  const write = (text: string): Promise<boolean> =>
    new Promise((resolve) => void stdout.write(text, (error) => resolve(error === undefined || error === null)));
  const result = await run(command, process.env, { width: stdout.columns ?? 80, write });
  if (result.kind === 'failed') return fail(result.message, result.exitCode);
  stdout.write(result.text);
  process.exitCode = result.exitCode ?? 0;
}

async function runSimulateCommand({ svg, ...options }: Extract<CliCommand, { kind: 'simulate' }>): Promise<void> {
  const { runSimulate } = await import('./cli/simulate-command.ts');
  const result = runSimulate({ ...options, width: process.stdout.columns ?? 80 }, { env: process.env, readFile });
  if (result.kind === 'failed') return fail(result.message, result.exitCode);
  finish(result);
  await writeSvg(svg, result.draw);
}

async function runTop({ admin, token, once }: Extract<CliCommand, { kind: 'top' }>): Promise<void> {
  const [{ top }, { parseAdminUrl }] = await Promise.all([
    import('./cli/top/top-command.ts'),
    import('./cli/top/admin-url.ts'),
  ]);
  const { env, stdout: output, stdin: input } = process;
  const address = parseAdminUrl(admin ?? (env['TIDEGATE_ADMIN'] || DEFAULT_ADMIN));
  if (!address.ok) return fail(address.message, 2);
  const result = await top({
    url: address.url,
    token: token ?? (env['TIDEGATE_ADMIN_TOKEN'] || undefined),
    once,
    colour: !env['NO_COLOR'],
    output,
    input,
    random: Math.random,
  });
  if (result.kind === 'failed') fail(result.message, 1);
}

/** Problems and remarks are for people: not part of what a script reads. */
function finish({ text, remarks, exitCode }: { text: string; remarks: string; exitCode: number }): void {
  process.stdout.write(text);
  process.stderr.write(remarks);
  process.exitCode = exitCode;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(message: string, exitCode: 1 | 2): never {
  process.stderr.write(message.includes('\n') ? `${message}\n` : `tidegate: ${message}\n`);
  process.exit(exitCode);
}
