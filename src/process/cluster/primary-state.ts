import type { Config } from '../../config/schema/config-schema.ts';
import type { KeyReply } from '../../sharing/keys/key-protocol.ts';
import { KeyServer } from '../../sharing/keys/key-server.ts';
import { WorkerOpenWrites } from '../../sharing/keys/worker-open-writes.ts';
import { reportInterrupted } from '../interrupted-writes.ts';
import { openOwnState, type OwnState, type OwnStateParts } from '../own-state.ts';
import type { ResourceStack } from '../resource-stack.ts';

export interface PrimaryKeysParts extends OwnStateParts {
  readonly send: (worker: number, reply: KeyReply) => void;
}

/** Opens the state of a primary, and what serves its keys to the workers. @throws StateDatabaseError */
export async function openPrimaryKeys(
  config: Config,
  { send, ...parts }: PrimaryKeysParts,
  resources: ResourceStack,
): Promise<{ readonly ownState: OwnState; readonly keyServer: KeyServer }> {
  const ownState = await openOwnState(config, parts, resources);
  const { logger, listen } = parts;
  const openWrites = new WorkerOpenWrites(ownState.openWrites, (write) => reportInterrupted(write, logger, listen));
  return { ownState, keyServer: new KeyServer(ownState.keyStore, send, openWrites, ownState.responseStore) };
}
