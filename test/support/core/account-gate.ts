/** A gate with accounts, in virtual time. */
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import type { AdmissionResult, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { Ticket as GateTicket } from '../../../src/core/admission/ticket.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { MemoryStoreOptions } from '../../../src/store/memory-store-options.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { response, upstreamSettings } from './policy-builders.ts';

class AccountTicket extends Ticket {
  pinned: string | undefined;
  admission: AdmissionResult | undefined;
  /** Of its client, which has proven its name; undefined if it has none. */
  clientClass: string | undefined = undefined;

  constructor(pinned?: string, client = 'client', mode: EnforcementMode = 'enforce') {
    const settle = (admission: AdmissionResult): void => {
      this.admission = admission;
    };
    super('up', client, 1, [], settle, { mode });
    this.pinned = pinned;
  }

  override get className(): string | undefined {
    return this.clientClass;
  }

  override get isClientProven(): boolean {
    return this.clientClass !== undefined;
  }

  override limitRefsWith(key: string): readonly LimitRef[] {
    return [{ upstream: 'up', nested: '', scope: 'credential', key }];
  }

  override pinnedAccount(): string | undefined {
    return this.pinned;
  }
}

/** Three rejected credentials in a row, then a probe after 30 s. */
const QUARANTINE = { statuses: new Set([401, 403]), after: 3, interval: 30_000, maxInterval: 600_000 };

/** @param settings of the upstream, beside its accounts @param options of the store */
export function openAccountGate(
  names: readonly string[] = ['a', 'b'],
  settings: Partial<UpstreamSettings> = {},
  options: Partial<MemoryStoreOptions> = {},
) {
  const events: ProxyEvent[] = [];
  const accounts = names.map((name) => ({ name, credential: new AccountCredential('Authorization', name) }));
  const upstreams = [
    upstreamSettings({ scope: 'credential', accounts: { accounts, quarantine: QUARANTINE }, ...settings }),
  ];
  const store = new MemoryStore({
    ...{ upstreams, maxTracked: 100, random: seededRandom(1), listen: () => undefined },
    ...options,
  });
  const gate = new Gate(store, (event) => void events.push(event));
  const arrive = (
    now: number,
    pinned?: string,
    client?: string,
    mode?: EnforcementMode,
    className?: string,
  ): AccountTicket => {
    const ticket = new AccountTicket(pinned, client, mode);
    ticket.clientClass = className;
    ticket.admission = gate.requestAdmission(ticket, now + 10_000, now);
    return ticket;
  };
  const answer = (ticket: GateTicket, now: number, status: number, retryAfterMs?: number): void => {
    gate.onSent(ticket, now);
    gate.onOutcome(ticket, response(status, { retryAfterMs }), now);
    gate.onAttemptEnd(ticket, now);
  };
  const quarantines = (): unknown[] =>
    events.flatMap((event) => (event.type === 'account-quarantined' ? [[event.account, event.status]] : []));
  /** A reload that leaves only these. */
  const keepAccounts = (kept: readonly string[]): void => {
    const left = accounts.filter(({ name }) => kept.includes(name));
    const upstream = upstreamSettings({ scope: 'credential', accounts: { accounts: left, quarantine: QUARANTINE } });
    store.configure([{ ...upstream, ...settings }], 100);
  };
  return { gate, store, arrive, answer, events, quarantines, keepAccounts };
}
