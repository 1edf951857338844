import type { Random } from '../../../src/core/scalars.ts';
import type { Topology } from './topology.ts';
import { pickOf, REPLAY_LIMIT } from './topology.ts';

/** An operation that one tenant wants to execute once, under one key. */
export interface Intent {
  readonly name: string;
  readonly tenant: string;
  readonly key: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  /** Credentials of its tenant, used in turn. */
  readonly tokens: readonly string[];
  /** Headers that identify its tenant, as names and values. */
  readonly account: readonly string[];
  /** Headers with its key, unless the body has it. */
  readonly keyed: readonly string[];
  readonly isPatient: boolean;
  /** The upstream always declines it. */
  readonly isHopeless: boolean;
  readonly history: string[];
}

const METHODS = ['POST', 'POST', 'POST', 'PATCH', 'PUT', 'DELETE'];

/** Draws two tenants that chose the same key, or one with a key of its own. */
export function drawIntents(topology: Topology, number: number, random: Random): readonly Intent[] {
  const isShared = random() < 0.4;
  const isKeyed = isShared || random() < 0.9;
  const shape = {
    key: isKeyed ? `key-${number}` : undefined,
    method: pickOf(METHODS, random),
    isPatient: random() < 0.9,
    // Some topologies distinguish tenants by token and body only: neither changes there, and bodies are buffered completely.
    isCertain: topology.tenancy === 'credential' && isShared,
  };
  const tenants = isShared ? ['a', 'b'] : [pickOf(['a', 'b'], random)];
  return tenants.map((tenant) => {
    const name = `${tenant}-${number}`;
    return {
      name,
      tenant,
      key: shape.key,
      method: shape.method,
      path: shape.isPatient ? '/charges' : '/impatient/charges',
      body: bodyOf(topology, name, shape.key, lengthOf(shape.isCertain, random)),
      keyed: keyHeaders(topology, shape.key),
      tokens: Array.from({ length: shape.isCertain ? 1 : 3 }, (_, i) => tokenOf(tenant, i)),
      account: accountOf(topology, tenant),
      isPatient: shape.isPatient,
      isHopeless: random() < 0.1,
      history: [],
    };
  });
}

function lengthOf(isShort: boolean, random: Random): number {
  const draw = random();
  if (isShort || draw < 0.5) return 10 + Math.floor(100 * random());
  return draw < 0.7 ? Math.floor(REPLAY_LIMIT * (0.5 + random())) : 20_000 + Math.floor(200_000 * random());
}

/** Keys are only found in completely buffered bodies. */
function bodyOf({ keyIn }: Topology, name: string, key: string | undefined, length: number): Buffer {
  if (keyIn === 'header' || key === undefined) return Buffer.from(name.padEnd(length, '.'));
  return Buffer.from(JSON.stringify({ key, name: name.padEnd(Math.min(length, REPLAY_LIMIT / 2), '.') }));
}

function keyHeaders({ keyIn }: Topology, key: string | undefined): readonly string[] {
  if (key === undefined) return [];
  return keyIn === 'header' ? ['Idempotency-Key', key] : ['Content-Type', 'application/json'];
}

function tokenOf(tenant: string, number: number): string {
  return `Bearer ${jwt({ sub: tenant, jti: number })}`;
}

function accountOf({ tenancy }: Topology, tenant: string): readonly string[] {
  switch (tenancy) {
    case 'header':
      return ['X-Account', tenant];
    case 'usual':
      return ['Stripe-Account', `acct_${tenant}`];
    case 'assertion':
      return ['PayPal-Auth-Assertion', jwt({ iss: 'partner', payer_id: tenant })];
    case 'subject':
    case 'credential':
      return [];
  }
}

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.`;
}
