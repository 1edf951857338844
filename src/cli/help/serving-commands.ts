import type { CommandDescription } from './command-description.ts';
import { FILE, option, valued, words } from './command-description.ts';

const ADDRESS_FORMS = 'host:port, [::]:port, unix:/path, or a port of 127.0.0.1';

export const SERVE_OPTIONS = [
  valued('config', 'FILE', 'configuration file (TIDEGATE_CONFIG)', FILE),
  valued('upstream', 'URL', 'the only upstream, or a replacement for that of the file (TIDEGATE_UPSTREAM)'),
  valued('listen', 'ADDRESS', `address for clients: ${ADDRESS_FORMS} (TIDEGATE_LISTEN)`),
  valued(
    'admin',
    'ADDRESS',
    'address of the admin port, in the same forms; false disables it (TIDEGATE_ADMIN)',
    words('false'),
  ),
];

export const SERVE: CommandDescription = {
  summary: 'run the proxy with a configuration file or --upstream; the default command',
  usage: ['[serve] [--config FILE] [--upstream URL] [OPTIONS]'],
  options: [
    ...SERVE_OPTIONS,
    valued('client-key', 'LIST', 'how to identify clients, tried in order: header:NAME, bearer, ip, path:N'),
    valued(
      'log-level',
      'LEVEL',
      'trace, debug, info, warn, error, fatal or silent',
      words('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    ),
  ],
  notes: [
    'TIDEGATE_REDIS_URL sets state.url and state.store: redis, so that replicas share their limits through Redis.',
    'Flags override environment variables, which override the file. SIGTERM drains; a second SIGTERM exits at once. SIGHUP reloads the configuration, as does a change of its file. On Windows, POST /drain of the admin API drains, and only a change of the file reloads.',
  ],
};

export const CHECK: CommandDescription = {
  operand: 'FILE',
  summary: 'validate a configuration; print its warnings, worst cases and, with --full, every setting',
  usage: ['check FILE [--full] [--probe]'],
  first: FILE,
  options: [
    option('full', 'also print every setting in effect, as a configuration with the report in its comments'),
    option('probe', 'also open a connection to each endpoint, without a request; exit with 1 if one accepts none'),
  ],
  notes: [
    'Prints the verdict and the warnings, then the worst cases, and exits with 0. If the configuration is invalid, prints every error with its position, and exits with 1. Secrets are not printed.',
  ],
};

export const DOCTOR: CommandDescription = {
  summary: 'check the configuration, its files, upstreams and Redis, the clock and limits of this machine',
  usage: ['doctor [--config FILE] [--upstream URL] [OPTIONS]'],
  options: [
    ...SERVE_OPTIONS,
    valued('token', 'TOKEN', 'admin token; TIDEGATE_ADMIN_TOKEN keeps it out of the process list'),
    option('json', 'print the findings as one JSON object'),
  ],
  notes: [
    'Checks what serve with the same options and variables would use, and a Tidegate that runs at its admin address. Opens a connection to each endpoint and sends it one HEAD request, for the time of its clock, with no credential but a configured client certificate. Each finding has a place, its meaning and what to do. Run it as the user of the service. Secrets are not printed.',
    'Exits with 0 if there is no problem (warnings may remain), with 1 if there is one, and with 2 if the command line is invalid. docs/doctor.md lists the findings.',
  ],
};

export const DIFF: CommandDescription = {
  operand: 'OLD NEW',
  summary: 'show what a reload would change, and what needs a restart',
  usage: ['diff OLD NEW [--json]'],
  first: FILE,
  others: FILE,
  options: [option('json', 'print the changes as one JSON object')],
  notes: [
    'Compares two effective configurations: routes, upstreams, each changed setting, what needs a restart, and what happens to learned limits. Exits with 0 if they are equal, with 1 if they differ, and with 2 if one of them cannot be read or is invalid. Secrets are not printed.',
  ],
};

export const SCHEMA: CommandDescription = {
  summary: 'print the JSON Schema of the configuration, for editors',
  usage: ['schema'],
  notes: [
    'Prints the JSON Schema of the configuration. Editors with the YAML language server use it if the first line of the file is',
    '  # yaml-language-server: $schema=tidegate.schema.json',
  ],
};

export const DEMO: CommandDescription = {
  summary: 'run a practice upstream, the proxy and traffic in one process',
  usage: ['demo [--listen ADDRESS] [--admin ADDRESS]'],
  options: [
    valued('listen', 'ADDRESS', 'address for clients; default: 127.0.0.1:8080, or a free port if that is in use'),
    valued('admin', 'ADDRESS', 'address of the live page; default: 127.0.0.1:9901, or a free port if that is in use'),
  ],
  notes: [
    'Runs a practice upstream, the proxy in front of it, and traffic. Prints a line each second: requests offered, responses with 200, requests refused, 429s of the upstream, and the learned rate. A response counts in the second in which it ends, so a line can have more responses than offered requests. Ctrl-C stops it.',
  ],
};
