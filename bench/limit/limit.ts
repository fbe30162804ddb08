/**
 * The limit consists of two rings of 64-byte slots in shared memory, driven from JS with promises. It has
 * nothing that makes an RPC: no methods, deadlines, cancellation, metadata, errors or flow control. The
 * benchmark compares the performance of each framework with that of the limit.
 *
 * A slot is `call u32 · kind u8 · length u8 · 2 spare · 56 bytes` of protobuf written in place. A payload
 * that does not fit the slot lies in the pool, and the slot contains the payload's index instead. The server
 * copies the payload into memory of its own, and the client copies an echoed payload into its own memory, as
 * READ and WRITE would.
 */
import { createRequire } from 'node:module';
import { packageRoot } from '../paths.ts';
import type { BenchClient, BenchHandlers, BenchServer, EndOptions, Msg, Peer } from '../peer.ts';
import { inlineMax, poolBuffers, readMsg, slotBytes, slots, writeMsg } from './slot.ts';

interface Addon {
  create(): number[];
  open(
    memory: number,
    wake0: number,
    wake1: number,
    side: number,
    adaptive: number,
  ): [ArrayBuffer, ArrayBuffer];
  start(onBatch: () => void): void;
  close(): void;
}

// shared.h and pump.h have the same values.
const ringsOffset = 4096;
const ringBytes = slots * slotBytes;
const poolOffset = ringsOffset + 2 * ringBytes;
const poolBufferBytes = (16 << 20) + 17 * 4096;
/** The parts of the pool: requests as the client created them, the server's copies, and answers. */
const Part = { request: 0, server: 1, answer: 2 } as const;
const Control = { rxFirst: 0, rxCount: 1, txCount: 2 } as const;
const Kind = { echo: 0, poolEcho: 1, poolPut: 2 } as const;

function loadAddon(): Addon {
  return createRequire(import.meta.url)(`${packageRoot}/build/limit/Release/limit.node`) as Addon;
}

/** One end of the two rings: the position of the next slot to write, and the slots of a received batch. */
class End {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly memory: ArrayBuffer;
  readonly addon = loadAddon();
  private readonly control: Uint32Array;
  private readonly txOffset: number;
  private readonly rxOffset: number;

  constructor(options: EndOptions, side: 0 | 1) {
    const [memory = -1, wake0 = -1, wake1 = -1] = options.descriptors;
    const [shared, control] = this.addon.open(
      memory,
      wake0,
      wake1,
      side,
      options.polling === 'adaptive' ? 1 : 0,
    );
    this.memory = shared;
    this.bytes = new Uint8Array(shared, 0, poolOffset);
    this.words = new Uint32Array(shared, 0, poolOffset / 4);
    this.control = new Uint32Array(control);
    this.txOffset = ringsOffset + side * ringBytes;
    this.rxOffset = ringsOffset + (1 - side) * ringBytes;
  }

  /** Returns the byte offset of the next slot to write. The pump publishes the slot when JS returns. */
  nextSlot(): number {
    const count = this.control[Control.txCount]!;
    this.control[Control.txCount] = count + 1;
    return this.txOffset + (count & (slots - 1)) * slotBytes;
  }

  /** Calls `take` with the byte offset of each slot that has arrived. */
  start(take: (at: number) => void): void {
    const { control, rxOffset } = this;
    this.addon.start(() => {
      const first = control[Control.rxFirst]!;
      const count = control[Control.rxCount]!;
      for (let i = 0; i < count; i++) take(rxOffset + ((first + i) & (slots - 1)) * slotBytes);
    });
  }

  /** Returns payload buffer `index` of one part of the pool. */
  pool(part: number, index: number, bytes: number): Uint8Array {
    return new Uint8Array(this.memory, poolOffset + (part * poolBuffers + index) * poolBufferBytes, bytes);
  }

  writeHead(at: number, call: number, kind: number): void {
    this.words[at >> 2] = call;
    this.bytes[at + 4] = kind;
  }

  writePlace(at: number, index: number, length: number, id: number): void {
    const word = at >> 2;
    this.words[word + 2] = index;
    this.words[word + 3] = length;
    this.words[word + 4] = id;
  }
}

async function serve(options: EndOptions, handlers: BenchHandlers): Promise<BenchServer> {
  const end = new End(options, 1);

  const answer = (call: number, message: Msg): void => {
    const at = end.nextSlot();
    end.writeHead(at, call, Kind.echo);
    writeMsg(end.bytes, at, message);
  };

  const takePool = (at: number, call: number, kind: number): void => {
    const word = at >> 2;
    const index = end.words[word + 2]!;
    const length = end.words[word + 3]!;
    const id = end.words[word + 4]!;
    const payload = end.pool(Part.server, index, length);
    payload.set(end.pool(Part.request, index, length));
    if (kind === Kind.poolPut) {
      handlers.put({ payload, id }).then((message) => answer(call, message));
      return;
    }
    handlers.echo({ payload, id }).then((message) => {
      end.pool(Part.answer, index, length).set(message.payload);
      const reply = end.nextSlot();
      end.writeHead(reply, call, Kind.poolEcho);
      end.writePlace(reply, index, message.payload.length, message.id);
    });
  };

  end.start((at) => {
    const call = end.words[at >> 2]!;
    const kind = end.bytes[at + 4]!;
    if (kind !== Kind.echo) takePool(at, call, kind);
    else handlers.echo(readMsg(end.bytes, at)).then((message) => answer(call, message));
  });
  return { close: async () => end.addon.close() };
}

let captured: (message: Msg) => void;
const capture = (resolve: (message: Msg) => void): void => {
  captured = resolve;
};

async function connect(options: EndOptions): Promise<BenchClient> {
  const end = new End(options, 0);
  const waiting: ((message: Msg) => void)[] = new Array(slots).fill(() => {});
  const free = Array.from({ length: slots }, (_, call) => call);

  const begin = (at: number, kind: number): Promise<Msg> => {
    const call = free.pop()!;
    end.writeHead(at, call, kind);
    const promise = new Promise<Msg>(capture);
    waiting[call] = captured;
    return promise;
  };

  const callPool = (message: Msg, worker: number, kind: number): Promise<Msg> => {
    const at = end.nextSlot();
    end.writePlace(at, worker, message.payload.length, message.id);
    return begin(at, kind);
  };

  const takePool = (at: number): Msg => {
    const word = at >> 2;
    const index = end.words[word + 2]!;
    const length = end.words[word + 3]!;
    return { payload: end.pool(Part.answer, index, length), id: end.words[word + 4]! };
  };

  end.start((at) => {
    const call = end.words[at >> 2]!;
    free.push(call);
    waiting[call]!(end.bytes[at + 4] === Kind.echo ? readMsg(end.bytes, at) : takePool(at));
  });
  return {
    buffer: (worker, bytes) =>
      bytes <= inlineMax ? new Uint8Array(bytes) : end.pool(Part.request, worker, bytes),
    echo(message, worker) {
      if (message.payload.length > inlineMax) return callPool(message, worker, Kind.poolEcho);
      const at = end.nextSlot();
      writeMsg(end.bytes, at, message);
      return begin(at, Kind.echo);
    },
    put: (message, worker) => callPool(message, worker, Kind.poolPut),
    close: async () => end.addon.close(),
  };
}

export const limit: Peer = {
  name: 'limit',
  fabric: 'shm',
  descriptors: () => loadAddon().create(),
  serve,
  connect,
};
