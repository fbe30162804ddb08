/**
 * Lets the two ends find each other before they have an RDMA connection. Each sends a card with the
 * information that the other needs, over a socket or inside one process. `ibv_*_pingpong` does the same with
 * its "local address".
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** The information about an end that a peer needs. */
export interface Card {
  readonly size: number;
  readonly iters: number;
  /** `QueuePair.address` of each queue pair, in hexadecimal. */
  readonly addresses: readonly string[];
  /** The port's GID and the numbers of the queue pairs, for datagrams. */
  readonly gid: string;
  readonly qpNums: readonly number[];
}

export interface Meeting {
  /** Sends one message, and resolves to the peer's. */
  swap<Message>(mine: Message): Promise<Message>;
  close(): void;
}

class SocketMeeting implements Meeting {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  constructor(socket: Socket) {
    this.#socket = socket.setNoDelay(true);
    // The iterator ends when the peer has gone. swap() then reports that the peer has gone.
    socket.on('error', () => undefined);
    this.#lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  }
  async swap<Message>(mine: Message): Promise<Message> {
    this.#socket.write(`${JSON.stringify(mine)}\n`);
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error('the other side has gone');
    return JSON.parse(value) as Message;
  }
  close(): void {
    this.#socket.end();
  }
}

/** Waits for one peer. `onListening` gets the port. */
export async function listen(port: number, onListening: (port: number) => void): Promise<Meeting> {
  const server = createServer();
  server.listen(port);
  await once(server, 'listening');
  onListening((server.address() as { port: number }).port);
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  return new SocketMeeting(socket);
}

export async function dial(host: string, port: number): Promise<Meeting> {
  const socket = connect(port, host);
  await once(socket, 'connect');
  return new SocketMeeting(socket);
}

/** Returns the two meetings of ends that are both in this process. */
export function meetHere(): [Meeting, Meeting] {
  const boxes = [new Box(), new Box()] as const;
  const end = (own: Box, peer: Box): Meeting => ({
    swap: <Message>(mine: Message): Promise<Message> => {
      peer.put(mine);
      return own.take() as Promise<Message>;
    },
    close: () => undefined,
  });
  return [end(boxes[0], boxes[1]), end(boxes[1], boxes[0])];
}

/** Messages that wait for their reader, or the reader that waits for a message. */
class Box {
  readonly #messages: unknown[] = [];
  #reader: ((message: unknown) => void) | undefined;

  put(message: unknown): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) this.#messages.push(message);
    else reader(message);
  }
  take(): Promise<unknown> {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift());
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }
}
