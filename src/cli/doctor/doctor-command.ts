/** `tidegate doctor`: checks what `serve` would use, and what runs already. */
import { userInfo } from 'node:os';
import { resolveServeSettings } from '../../config/load/serve-settings.ts';
import { completeAddress, parseListenAddress } from '../../config/values/listen-address.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import type { Random } from '../../core/scalars.ts';
import { CertificateExpiries } from '../../process/certificates/certificate-expiries.ts';
import { checkAddresses } from './check-addresses.ts';
import type { ValidSettings } from './check-config.ts';
import { checkConfig, placeOfSetting } from './check-config.ts';
import { checkCertificateExpiry, checkOpenFiles } from './check-machine.ts';
import { describeRedis } from './check-redis.ts';
import { checkRunning, runningTarget } from './check-running.ts';
import { checkStateFile } from './check-state-file.ts';
import type { NamedClockSample } from './check-upstreams.ts';
import { checkUpstreams } from './check-upstreams.ts';
import type { DoctorCommand } from './doctor-arguments.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { skipped } from './doctor-finding.ts';
import { count, findingsAsJson, formatFindings } from './format-findings.ts';
import { judgeClock } from './judge-clock.ts';

export interface DoctorEnvironment extends ConfigEnvironment {
  /** Of this command. */
  readonly version: string;
  readonly random: Random;
}

export interface DoctorReport {
  readonly text: string;
  readonly remarks: string;
  /** 1 if there is a problem; 2 if `--admin` is not an address. */
  readonly exitCode: 0 | 1 | 2;
}

/** Runs all checks. Takes at most some seconds: the longest `connectTimeout`, or 5 s for Redis and for a Tidegate that runs. */
export async function runDoctor(command: DoctorCommand, environment: DoctorEnvironment): Promise<DoctorReport> {
  const { version, random } = environment;
  const invalid = describeInvalidAdmin(command.flags.admin);
  if (invalid !== undefined) return { text: '', remarks: `tidegate: ${invalid}\n`, exitCode: 2 };
  const user = currentUser();
  const settings = resolveServeSettings(command.flags, environment);
  const token = command.token ?? (environment.env['TIDEGATE_ADMIN_TOKEN'] || undefined);
  const findings = [
    ...checkConfig(settings, user),
    ...(settings.kind === 'ok'
      ? await checkValid(settings, { token, version, user, random })
      : await checkRunningWithout(settings.kind, command, environment)),
  ];
  const subject = { version, node: process.versions.node, user };
  const text = command.json ? findingsAsJson(findings, subject) : formatFindings(findings, subject);
  return { text, remarks: '', exitCode: count(findings).problems > 0 ? 1 : 0 };
}

interface ValidCheckOptions extends Pick<DoctorEnvironment, 'version' | 'random'> {
  readonly token: string | undefined;
  /** The name of this user. */
  readonly user: string;
}

async function checkValid(
  settings: ValidSettings,
  { token, version, user, random }: ValidCheckOptions,
): Promise<DoctorFinding[]> {
  const { config } = settings;
  const [running, upstreams, redis] = await Promise.all([
    checkRunning(runningTarget(config, token), version),
    checkUpstreams(settings),
    checkRedis(settings, random),
  ]);
  const expiries = new CertificateExpiries(() => config, { now: () => performance.now() }).all();
  return [
    ...checkCertificateExpiry(expiries, Date.now()),
    ...checkStateFile(config.state, placeOfSetting(settings, ['state', 'file']), user),
    checkOpenFiles(config, running.openFiles),
    ...(await checkAddresses(config, running.presence)),
    ...upstreams.findings,
    ...redis.findings,
    ...judgeClock([...upstreams.clocks, ...redis.clocks]),
    ...running.findings,
  ];
}

/** Loads the client of Redis only for a configuration that uses it. */
async function checkRedis(
  settings: ValidSettings,
  random: Random,
): Promise<{ readonly findings: readonly DoctorFinding[]; readonly clocks: readonly NamedClockSample[] }> {
  const { state } = settings.config;
  if (state.store !== 'redis') return { findings: [], clocks: [] };
  const { probeRedis } = await import('../../process/probes/probe-redis.ts');
  const probe = await probeRedis(state, random);
  const findings = describeRedis(probe, state, placeOfSetting(settings, ['state', 'url']));
  return { findings, clocks: probe.kind === 'connected' ? [{ ...probe.clock, name: 'Redis' }] : [] };
}

/** Without a valid configuration: the Tidegate at the address of the flag or the variable. Without any, the one at the default address. */
async function checkRunningWithout(
  kind: 'nothing' | 'mistakes',
  { flags, token }: DoctorCommand,
  { env, version }: DoctorEnvironment,
): Promise<readonly DoctorFinding[]> {
  const given = flags.admin ?? (env['TIDEGATE_ADMIN'] || undefined);
  if (given === undefined && kind === 'mistakes') {
    const meaning = 'the admin address of an invalid configuration is not known: --admin gives it';
    return [skipped('running', 'admin', meaning)];
  }
  const admin = given === 'false' ? undefined : (given ?? '127.0.0.1:9901');
  const target = { admin, token: token ?? (env['TIDEGATE_ADMIN_TOKEN'] || undefined) };
  return (await checkRunning(target, version)).findings;
}

/** @returns undefined if it is an address, `false`, or not given */
function describeInvalidAdmin(admin: string | undefined): string | undefined {
  if (admin === undefined || admin === 'false') return undefined;
  const reading = parseListenAddress(completeAddress(admin));
  return reading.ok ? undefined : `--admin: '${admin}' is not an address; expected host:port, unix:/path or false`;
}

/** The number, if the user has no name. */
function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
