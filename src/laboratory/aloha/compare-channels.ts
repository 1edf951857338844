import type { Random } from '../../core/scalars.ts';
import type { RoundRobinCell } from '../round-robin.ts';
import { RoundRobinExperiment } from '../round-robin.ts';
import { randomStreams } from '../random-streams.ts';
import type { Retransmission } from './retransmission.ts';
import type { ChannelFigures } from './slotted-channel.ts';
import { SlottedChannel } from './slotted-channel.ts';

export interface ChannelRow extends ChannelFigures {
  readonly strategy: string;
  /** In the last part most users are backlogged, and less than half of the offered load succeeds. */
  readonly collapsed: boolean;
  /** The backlog over time: means of up to 200 equal parts, warm-up included. */
  readonly history: readonly (readonly [slot: number, backlog: number])[];
}

export interface ChannelSettings {
  readonly users: number;
  readonly load: number;
  readonly retransmissions: readonly Retransmission[];
  /** Simulated slots of each, ≥ 1; the first tenth is not counted. */
  readonly slots: number;
  readonly seed: number;
}

const PARTS = 200;
/** Slots to a step. */
const SLOTS_PER_STEP = 20_000;
/** Of the parts. */
const WARM_UP_PARTS = PARTS / 10;

/** Compares retransmission strategies on the same channel. */
export function compareChannels({
  users,
  load,
  retransmissions,
  slots,
  seed,
}: ChannelSettings): RoundRobinExperiment<ChannelRow> {
  const next = randomStreams(seed);
  const part = Math.ceil(slots / PARTS);
  const cells = retransmissions.map((each) => new ChannelCell({ users, load, part, retransmission: each }, next()));
  return new RoundRobinExperiment(cells, PARTS);
}

interface ChannelCellSettings {
  readonly users: number;
  readonly load: number;
  readonly part: number;
  readonly retransmission: Retransmission;
}

class ChannelCell implements RoundRobinCell<ChannelRow> {
  readonly #parts: ChannelCellSettings;
  readonly #channel: SlottedChannel;
  readonly #history: (readonly [number, number])[] = [];
  /** The start and the progress of the part. */
  #before: ChannelFigures;
  #slotsInPart = 0;
  #backlog = 0;
  #throughput = 0;

  constructor(parts: ChannelCellSettings, random: Random) {
    this.#parts = parts;
    this.#channel = new SlottedChannel({ ...parts, random });
    this.#before = this.#channel.figures();
  }

  run(): boolean {
    const { part } = this.#parts;
    const slots = Math.min(SLOTS_PER_STEP, part - this.#slotsInPart);
    if (this.#history.length === WARM_UP_PARTS && this.#slotsInPart === 0) this.#startCounting();
    this.#channel.run(slots);
    this.#slotsInPart += slots;
    if (this.#slotsInPart < part) return false;
    const before = this.#before;
    const after = this.#channel.figures();
    this.#backlog = (after.backlog * after.slots - before.backlog * before.slots) / part;
    this.#throughput = (after.throughput * after.slots - before.throughput * before.slots) / part;
    this.#history.push([(this.#history.length + 0.5) * part, this.#backlog]);
    this.#before = after;
    this.#slotsInPart = 0;
    return true;
  }

  /** Starts counting. */
  #startCounting(): void {
    this.#channel.reset();
    this.#before = this.#channel.figures();
  }

  row(): ChannelRow | undefined {
    const { users, load, retransmission } = this.#parts;
    const figures = this.#channel.figures();
    if (figures.slots === 0) return undefined;
    const collapsed = this.#backlog > users / 2 && this.#throughput < load / 2;
    return { strategy: retransmission.name, ...figures, collapsed, history: this.#history };
  }
}
