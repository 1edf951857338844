import type { CommandDescription, OptionDescription } from './command-description.ts';
import { FILE, option, OTHER, valued, words } from './command-description.ts';

const ADMIN = valued(
  'admin',
  'URL',
  'admin port of the proxy: http://host:port, host:port, port or unix:/path (TIDEGATE_ADMIN); default: 127.0.0.1:9901',
);

/** @param needed what needs the token, as the start of a list */
function token(needed = ''): OptionDescription {
  return valued('token', 'TOKEN', `admin token${needed}; TIDEGATE_ADMIN_TOKEN keeps it out of the process list`);
}

const JSON_OBJECT = option('json', 'print one JSON object');

export const EXPLAIN: CommandDescription = {
  operand: 'ID',
  summary: 'explain why a request ended as it did; ID is the Tidegate-Request-Id of its response',
  usage: ['explain ID [--admin URL] [--token TOKEN] [--json]'],
  first: OTHER,
  options: [ADMIN, token(), option('json', 'print the explanation as one JSON object')],
  notes: [
    'Explains a request: each decision with its numbers, the result of each attempt, and the reason for each wait. The ID is in the response (Tidegate-Request-Id) and in the log. docs/explain.md says which requests are recorded.',
  ],
};

export const CLIENTS: CommandDescription = {
  operand: 'ACTION',
  summary: 'create, list or remove the API keys of clients',
  usage: [
    'clients add NAME --file FILE [--expires TIME] [--json]',
    'clients list --file FILE [--json]',
    'clients remove NAME|ID --file FILE [--json]',
  ],
  first: words('add', 'list', 'remove'),
  others: OTHER,
  options: [
    valued('file', 'FILE', 'the file of clients.auth.apiKeys.file; add creates it', FILE),
    valued(
      'expires',
      'TIME',
      'when the key expires: days or hours such as 90d or 12h, or a date such as 2027-06-30; default: never',
    ),
    JSON_OBJECT,
  ],
  notes: [
    'add creates a key for a client, prints it once, and stores only its hash. A client may have several keys. remove takes the ID of a key, or the NAME of a client for all of its keys. A running Tidegate uses the changed file within a second. docs/clients.md describes the setup.',
  ],
};

export const KEYS: CommandDescription = {
  operand: 'ACTION',
  summary: 'list, show or forget the idempotency keys that a running Tidegate remembers',
  usage: [
    'keys list [--upstream NAME] [--state STATE] [--oldest] [--limit N] [OPTIONS]',
    'keys show ID [OPTIONS]',
    'keys show --key KEY [--upstream NAME] [OPTIONS]',
    'keys forget ID [OPTIONS]',
    'keys forget --key KEY [--upstream NAME] [OPTIONS]',
  ],
  first: words('list', 'show', 'forget'),
  others: OTHER,
  options: [
    valued(
      'state',
      'STATE',
      'in_progress, unresolved, answered, or open: in_progress or unresolved',
      words('in_progress', 'unresolved', 'answered', 'open'),
    ),
    valued('upstream', 'NAME', 'only keys of requests to this upstream'),
    valued('key', 'KEY', 'the key, as the client sent it; other users of the machine see it in the process list'),
    option('oldest', 'oldest first; default: newest first'),
    valued('limit', 'N', 'at most so many keys, 1 to 500; default: 50'),
    ADMIN,
    token(', which forget always needs'),
    JSON_OBJECT,
  ],
  notes: [
    'Tidegate keeps hashes of keys, and derives the ID from them; log lines have it as `write`. Eight first digits of it suffice. After forget, a request with the key is sent as a new write. A key in use is not forgotten. docs/idempotency.md says when to use it. With state.store: redis, each replica shows and forgets the keys of all replicas.',
  ],
};

export const DELIVERIES: CommandDescription = {
  operand: 'ACTION',
  summary: 'list, show, retry, cancel or export the deliveries that a running Tidegate stores',
  usage: [
    'deliveries list [--state STATE] [--route ROUTE] [--after ID] [--limit N] [OPTIONS]',
    'deliveries show ID [--message] [OPTIONS]',
    'deliveries retry ID [OPTIONS]',
    'deliveries retry --state STATE [--route ROUTE] [--confirm N] [OPTIONS]',
    'deliveries cancel ID [OPTIONS]',
    'deliveries export [--state STATE] [--route ROUTE] [--after ID] [--message] [OPTIONS]',
  ],
  first: words('list', 'show', 'retry', 'cancel', 'export'),
  others: OTHER,
  options: [
    valued(
      'state',
      'STATE',
      'waiting, sending, delivered, dead, canceled, unknown, or open: waiting or sending; retry takes dead, canceled or waiting',
      words('waiting', 'sending', 'delivered', 'dead', 'canceled', 'unknown', 'open'),
    ),
    valued('route', 'ROUTE', 'only deliveries of this route, by its name in metrics: methods, host and path'),
    valued('after', 'ID', 'only deliveries that were accepted after this one'),
    valued('limit', 'N', 'at most N deliveries, 1 to 500; default: 50'),
    option('message', 'also the stored request, and the response to an async write that is delivered'),
    valued('confirm', 'N', 'retry the deliveries that match, if exactly N do; without it, only count them'),
    ADMIN,
    token(', which retry, cancel and --message always need'),
    option('json', 'print one JSON object; export always prints one for each delivery, one a line'),
  ],
  notes: [
    'Lists are in the order of acceptance. retry makes a dead, canceled, waiting or unknown delivery due now, with a new schedule. With --state, it retries all that match, reports those that it could not retry, and then exits with 1. Before you retry an unknown write, look it up at the upstream. cancel ends a waiting delivery. See docs/deliveries.md and docs/runbooks.md.',
  ],
};

export const TOP: CommandDescription = {
  summary: 'show a running Tidegate live in the terminal',
  usage: ['top [--admin URL] [--token TOKEN] [--once]'],
  options: [
    valued('admin', 'URL', 'admin port; default: http://127.0.0.1:9901 (TIDEGATE_ADMIN)'),
    token(),
    option('once', 'print one frame and exit; the default if the output is not a terminal'),
  ],
  notes: [
    'Shows upstreams, the most restricted clients and the timeline. q or Ctrl-C exits. NO_COLOR disables colours.',
  ],
};

export const COMPLETION: CommandDescription = {
  operand: 'SHELL',
  summary: 'print a script that completes commands and options in bash, zsh or fish',
  usage: ['completion bash|zsh|fish'],
  first: words('bash', 'zsh', 'fish'),
  notes: [
    'Write the script to a file that the shell reads:',
    '  tidegate completion bash > /usr/share/bash-completion/completions/tidegate',
    '  tidegate completion zsh > /usr/local/share/zsh/site-functions/_tidegate',
    '  tidegate completion fish > ~/.config/fish/completions/tidegate.fish',
  ],
};

export const MAN: CommandDescription = {
  summary: 'print the man page',
  usage: ['man'],
  notes: ['Prints all of this help as a man page. To read it:', '  tidegate man | man -l -'],
};

export const HELP: CommandDescription = {
  operand: '[COMMAND]',
  summary: 'print this overview, or the help of a command',
  usage: ['help [COMMAND]'],
  first: { kind: 'command' },
};

export const VERSION: CommandDescription = { summary: 'print the version', usage: ['version'] };
