/**
 * Implements a client that violates the rules of remote memory. The client does not answer messages, and it
 * posts any request with keys that it has learned, without any check on its own side.
 */
import type { Channel } from 'rdma-rpc';
import type { Exposure } from 'rdma-rpc/memory';
import { clientChannel } from '../../runtime/client/channel.ts';
import {
  controlText,
  type Frame,
  type MemoryAccepted,
  type MemoryEnd,
} from '../../runtime/control/frames.ts';
import { MemoryQueue, type Operation, type Posted } from '../../runtime/memory/queue.ts';
import { Kind, type Message } from '../../runtime/memory/wire.ts';
import type { SendBatch } from '../../runtime/verbs/batches.ts';
import { Access } from '../../runtime/verbs/constants.ts';
import type { MemoryRegion } from '../../runtime/verbs/memory-region.ts';

/** Adds a request to the batch. */
type Add = (batch: SendBatch, wrId: number, flags: number) => void;

export class Hostile {
  /** The messages that this client has received. */
  readonly messages: Required<Message>[] = [];
  readonly ended: Promise<string>;
  /** Number of requests that have completed with success. */
  completed = 0;
  readonly local: MemoryRegion;
  readonly queue: MemoryQueue;
  #heard: (() => void)[] = [];

  private constructor(queue: (owner: Hostile, end: (reason: string) => void) => MemoryQueue) {
    let end!: (reason: string) => void;
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    this.queue = queue(this, end);
    const { pd } = this.queue;
    this.local = pd.regMr(pd.allocBuffer(65_536), Access.localWrite);
  }

  /**
   * Connects the hostile client's memory in place of connectMemory(), on a connected channel. `number` counts
   * the channel's queue pairs.
   */
  static async connect(channel: Channel, number = 0): Promise<Hostile> {
    const link = clientChannel('test', channel).link!;
    const terms = link.connection.memory!;
    const hostile = new Hostile((self, end) => {
      const onMessage = (message: Required<Message>): void => self.#onMessage(message);
      // On shm a queue pair that is destroyed at once loses its error, but the frame reports the error
      // everywhere.
      const onEnd = (reason: string): void => {
        if (link.ended === undefined) link.send({ type: 'memoryEnd', number, reason: controlText(reason) });
        end(reason);
      };
      return new MemoryQueue(terms.device, 'connect', { onMessage, onEnd });
    });
    const { queue } = hostile;
    const { address } = queue;
    const accepted = await new Promise<Frame>((resolve) => {
      const onFrame = (frame: MemoryAccepted | MemoryEnd): void => {
        if (frame.number !== number) return;
        resolve(frame);
        if (frame.type === 'memoryEnd') queue.end(frame.reason);
      };
      link.memory = { onFrame, end: (reason) => queue.end(reason) };
      const proof = terms.offered(number, address);
      link.send({ type: 'memory', number, address, exposer: new Uint8Array(8), ...proof });
    });
    if (accepted.type !== 'memoryAccepted') throw new Error(`${accepted.type} instead of memoryAccepted`);
    const { through, words } = terms.joining(number, address, accepted.address);
    const [host, port] =
      through === undefined ? [] : 'path' in through ? [through.path] : [through.host, through.port];
    await queue.join({ host, port, words }, accepted.address);
    return hostile;
  }

  /** Sends a message, and waits for a message of the given kind. */
  async ask(message: Message, kind: Kind): Promise<Required<Message>> {
    this.queue.say(message);
    for (;;) {
      const found = this.messages.find((each) => each.kind === kind && each.id === message.id);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#heard.push(resolve));
    }
  }
  /** Learns the address and the key of memory that is exposed to this client. */
  async open({ handle }: Exposure): Promise<Required<Message>> {
    if (!this.messages.some(({ kind }) => kind === Kind.hello)) await this.hello();
    return this.ask({ kind: Kind.open, id: handle.id }, Kind.opened);
  }
  async hello(): Promise<void> {
    await this.ask({ kind: Kind.hello, id: 0 }, Kind.hello);
  }

  /** Posts requests unchanged, all at once. */
  post(...adds: Add[]): void {
    for (const add of adds) this.queue.begin(this.#operation(add));
  }
  write(key: number, address: number, byteLength = 8): Add {
    return (batch, wrId, flags) => batch.write(wrId, address, key, flags).sge(this.local, 0, byteLength);
  }
  read(key: number, address: number, byteLength = 8): Add {
    return (batch, wrId, flags) => batch.read(wrId, address, key, flags).sge(this.local, 0, byteLength);
  }
  fetchAdd(key: number, address: number): Add {
    return (batch, wrId, flags) => batch.fetchAdd(wrId, address, key, 1n, flags).sge(this.local, 0, 8);
  }

  close(): void {
    this.queue.end('the test is over');
  }

  #operation(add: Add): Operation {
    let isPosted = false;
    const posted: Posted = {
      bytes: 0,
      order: 'message',
      done: () => {
        ++this.completed;
        this.queue.finish(operation);
      },
    };
    const operation: Operation = {
      order: 'read',
      refused: () => undefined,
      add: (batch, wrId, flags) => {
        add(batch, wrId, flags);
        isPosted = true;
        return posted;
      },
      get isPosted() {
        return isPosted;
      },
      fail: () => this.queue.finish(operation),
    };
    return operation;
  }

  #onMessage(message: Required<Message>): void {
    this.messages.push(message);
    for (const each of this.#heard.splice(0)) each();
  }
}
