import type { Random } from '../../core/exchange/attempt-outcome.ts';
import type { Cell } from '../round-robin.ts';
import { Rounds } from '../round-robin.ts';
import { streams } from '../random-streams.ts';
import type { Retransmission } from './retransmission.ts';
import type { ChannelFigures } from './slotted-channel.ts';
import { SlottedChannel } from './slotted-channel.ts';

export interface ChannelRow extends ChannelFigures {
  readonly strategy: string;
  /** Most users of the last part have a packet that has collided, and less than half of what is offered comes through. */
  readonly collapsed: boolean;
  /** The backlog over time: means of up to 200 equal parts, warm-up included. */
  readonly history: readonly (readonly [slot: number, backlog: number])[];
}

export interface ChannelSettings {
  readonly users: number;
  readonly load: number;
  readonly retransmissions: readonly Retransmission[];
  /** That are simulated of each, ≥ 1; the first tenth is not counted. */
  readonly slots: number;
  readonly seed: number;
}

const PARTS = 200;
/** Slots to a step. */
const STRIDE = 20_000;
/** Of the parts. */
const WARM_UP = PARTS / 10;

/** The same channel with one way of retransmission after another. */
export function compareChannels({ users, load, retransmissions, slots, seed }: ChannelSettings): Rounds<ChannelRow> {
  const next = streams(seed);
  const part = Math.ceil(slots / PARTS);
  const cells = retransmissions.map((each) => new ChannelCell({ users, load, part, retransmission: each }, next()));
  return new Rounds(cells, PARTS);
}

interface ChannelParts {
  readonly users: number;
  readonly load: number;
  readonly part: number;
  readonly retransmission: Retransmission;
}

class ChannelCell implements Cell<ChannelRow> {
  readonly #parts: ChannelParts;
  readonly #channel: SlottedChannel;
  readonly #history: (readonly [number, number])[] = [];
  /** When the part began, and how far it has come. */
  #before: ChannelFigures;
  #inPart = 0;
  #backlog = 0;
  #throughput = 0;

  constructor(parts: ChannelParts, random: Random) {
    this.#parts = parts;
    this.#channel = new SlottedChannel({ ...parts, random });
    this.#before = this.#channel.figures();
  }

  run(): boolean {
    const { part } = this.#parts;
    const slots = Math.min(STRIDE, part - this.#inPart);
    if (this.#history.length === WARM_UP && this.#inPart === 0) this.#begin();
    this.#channel.run(slots);
    this.#inPart += slots;
    if (this.#inPart < part) return false;
    const before = this.#before;
    const after = this.#channel.figures();
    this.#backlog = (after.backlog * after.slots - before.backlog * before.slots) / part;
    this.#throughput = (after.throughput * after.slots - before.throughput * before.slots) / part;
    this.#history.push([(this.#history.length + 0.5) * part, this.#backlog]);
    this.#before = after;
    this.#inPart = 0;
    return true;
  }

  /** What comes now is counted. */
  #begin(): void {
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
