/**
 * A sideband connection: length-prefixed msgpack frames over any Duplex (socket, or an in-memory pair).
 * During the handshake frames are awaited one by one; afterwards each goes to `onFrame`. Used by both
 * handshakes.
 */
import type { Duplex } from 'node:stream';
import { Packr, Unpackr } from '#msgpackr';
import { clockMs } from '../clock.ts';
import { comeAgainIn } from '../core/errors/pushback.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { errorCode, Status } from '../core/errors/status.ts';
import { closeTimeoutMs, controlFrameBytes } from '../limits.ts';
import { checkFrame, controlText, type Frame, type Refusal } from './frames.ts';
import { greetingBytes, greetingMagic, type Handoff } from './socket/handoff.ts';
import { isTls, plainRefused, tlsClosed, tlsRefused } from './tls/tls-records.ts';

const prefixBytes = 4;
const plain = { useRecords: false, moreTypes: false, mapsAsObjects: true, copyBuffers: true } as const;
const packr = new Packr(plain);
const unpackr = new Unpackr(plain);
/** One for all: it is read by nobody, and a server has one for each session of the tcp fabric. */
const handedOver = new Error('a connection of a session');
const passedOn = 'a connection that is passed on';

/** For the client: why the server does not take it. */
export function refused(refusal: Refusal): RpcError {
  const { code, message, retryMs } = refusal;
  return new RpcError(errorCode(code), `the server refused the connection: ${message}`, {
    processed: 'no',
    trailer: retryMs === undefined ? undefined : comeAgainIn(retryMs),
  });
}

export function encodeFrame(frame: Frame): Buffer {
  const body = packr.pack(frame);
  const bytes = Buffer.allocUnsafe(prefixBytes + body.byteLength);
  bytes.writeUInt32LE(body.byteLength, 0);
  bytes.set(body, prefixBytes);
  return bytes;
}

/** The frame in `body`, or why it is none. */
export function decodeFrame(body: Uint8Array): Frame | string {
  let value: unknown;
  try {
    value = unpackr.unpack(body);
  } catch {
    return 'not MessagePack';
  }
  return checkFrame(value);
}

export class Link {
  /** With TLS another one than it began with. */
  duplex: Duplex;
  /** Set once the handshake is over: frames that come unasked. */
  onFrame: ((frame: Frame) => void) | undefined;
  /** Called once, with what ended the connection. */
  onEnd: ((reason: string) => void) | undefined;

  /** What the handshake waits for that is this side's own, for the error when it takes too long. */
  awaits: string | undefined;
  /** It was no sideband connection, but one of a session of this process, which has it now. */
  handedOver = false;

  #spoke = false;
  /** When this side began to wait for what the peer does next, and how many round trips that takes. */
  #awaitedSinceMs = clockMs();
  #roundTrips = 1;
  #steps = 0;
  #opening: Uint8Array[] | undefined = [];
  #handoff: Handoff | undefined;
  #securing = false;
  #pending: Buffer = Buffer.alloc(0);
  readonly #ready: Frame[] = [];
  #waiter: { resolve(frame: Frame): void; reject(error: Error): void } | undefined;
  #ended: string | undefined;
  #code: number | undefined;

  /** `handoff`: where connections go that do not begin with a frame; without it they are refused. */
  constructor(duplex: Duplex, handoff?: Handoff) {
    this.duplex = duplex;
    this.#handoff = handoff;
    this.#listen();
  }

  /** The status code with which this side, or TLS, has refused the peer. Undefined when it has not. */
  get refusalCode(): number | undefined {
    return this.#code;
  }

  /** Why the connection is over, or undefined. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** One that has come and that nobody has received yet. */
  get refusal(): Refusal | undefined {
    return this.#ready.find((frame) => frame.type === 'refusal');
  }

  /**
   * How long the peer has been waited for by now, ms for each round trip that it needs; 0 while it waits for
   * this side.
   */
  get awaitedMs(): number {
    const awaits = this.#securing || this.#waiter !== undefined;
    return awaits ? (clockMs() - this.#awaitedSinceMs) / this.#roundTrips : 0;
  }

  /**
   * How far the peer has got in the handshake: TLS, each frame, and what `progressed` is told of count one.
   */
  get steps(): number {
    return this.#steps;
  }

  /**
   * The peer has got one step further, without a frame here. What is waited for now is one round trip away.
   */
  progressed(): void {
    ++this.#steps;
    this.#awaitedSinceMs = clockMs();
    this.#roundTrips = 1;
  }

  /** Hello and welcome, as they have passed. Once. */
  takeOpening(): readonly Uint8Array[] {
    const opening = this.#opening ?? [];
    this.#opening = undefined;
    return opening;
  }

  send(frame: Frame): void {
    if (this.#ended !== undefined) return;
    const bytes = encodeFrame(frame);
    this.#keep(frame, bytes.subarray(prefixBytes));
    this.duplex.write(bytes);
  }

  /**
   * The next frame. Rejects when the connection ends first. One caller at a time. `roundTrips`: how many of
   * them the peer needs before it can send that.
   */
  receive(roundTrips = 1): Promise<Frame> {
    const frame = this.#ready.shift();
    if (frame !== undefined) return Promise.resolve(frame);
    if (this.#ended !== undefined) return Promise.reject(this.#error());
    this.#awaitedSinceMs = clockMs();
    this.#roundTrips = roundTrips;
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** What the promise resolves with. Rejects when the connection ends first. Before `onEnd` is set. */
  whileOpen<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.onEnd = () => reject(this.#error());
      if (this.#ended !== undefined) reject(this.#error());
      promise.then(resolve, reject);
    }).finally(() => {
      this.onEnd = undefined;
    });
  }

  /** Hands frames that came before `onFrame` was set to it. */
  deliver(onFrame: (frame: Frame) => void): void {
    this.onFrame = onFrame;
    for (const frame of this.#ready.splice(0)) this.#dispatch(frame);
  }

  /**
   * Sends a last frame, if there is one to send, and ends the connection. `onEnd` is called with `reason`
   * unless it already was.
   */
  close(reason: string, last?: Frame): void {
    if (this.#ended === undefined && last?.type === 'refusal') this.#code = last.code;
    if (this.#ended === undefined && last !== undefined && !this.#awaitsTls)
      this.duplex.end(encodeFrame(last));
    this.#end(reason);
  }

  /** A frame would be read as TLS, and be taken for a server that has none. */
  get #awaitsTls(): boolean {
    return this.#securing || this.#handoff?.secure !== undefined;
  }

  readonly #onData = (chunk: Buffer): void => this.#take(chunk);
  readonly #onFinish = (): void => this.#end('the peer closed the connection');

  #listen(): void {
    this.duplex.on('data', this.#onData).on('end', this.#onFinish);
    this.duplex.on('error', (error) => this.#end(`the connection failed: ${error.message}`));
    this.duplex.on('close', () => this.#end(this.#securing ? tlsClosed : 'the connection was closed'));
  }

  #take(chunk: Buffer): void {
    if (this.#ended !== undefined) return;
    this.#pending = this.#pending.byteLength === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#pending.byteLength >= prefixBytes && this.#ended === undefined) {
      const bodyBytes = this.#pending.readUInt32LE(0);
      if (!this.#spoke && this.#handoff !== undefined && this.#isNotRead(bodyBytes, this.#handoff)) return;
      if (bodyBytes === 0 || bodyBytes > controlFrameBytes) {
        this.#refuse(
          `a frame of ${bodyBytes} bytes, allowed are 1 to ${controlFrameBytes}: not an rdma-rpc peer?`,
        );
        return;
      }
      if (this.#pending.byteLength < prefixBytes + bodyBytes) return;
      const body = this.#pending.subarray(prefixBytes, prefixBytes + bodyBytes);
      const frame = decodeFrame(body);
      this.#pending = this.#pending.subarray(prefixBytes + bodyBytes);
      if (typeof frame === 'string') this.#refuse(`bad frame: ${frame}`);
      else {
        this.#spoke = true;
        ++this.#steps;
        this.#keep(frame, body);
        this.#dispatch(frame);
      }
    }
  }

  #keep({ type }: Frame, body: Uint8Array): void {
    const opens = type === 'hello' || type === 'welcome';
    if (opens) this.#opening?.push(Uint8Array.from(body));
  }

  #dispatch(frame: Frame): void {
    // In a handshake it is out of turn, as anything else that is not waited for.
    if (frame.type === 'ping' && this.onFrame !== undefined) {
      // A peer that does not read its answers gets no more of them.
      if (!this.duplex.writableNeedDrain) this.send({ type: 'pong' });
      return;
    }
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      waiter.resolve(frame);
    } else if (this.onFrame !== undefined) {
      this.onFrame(frame);
    } else if (this.#ready.length < 4) {
      this.#ready.push(frame);
    } else {
      this.#refuse('frames out of turn');
    }
  }

  /**
   * Whether the first frame is not for this link to read as it came: it is no frame, or is passed on, or
   * comes where only others are taken. `bodyBytes`: its length, if it is a frame.
   */
  #isNotRead(bodyBytes: number, handoff: Handoff): boolean {
    if (bodyBytes === greetingMagic) {
      if (this.#pending.byteLength >= greetingBytes) this.#give(handoff);
    } else if (isTls(bodyBytes)) {
      if (handoff.secure === undefined) this.#refuse(tlsRefused);
      else this.#secure(handoff.secure, handoff.passOn);
    } else if (handoff.secure !== undefined) {
      this.#handoff = undefined;
      this.close(plainRefused, { type: 'refusal', code: Status.UNAUTHENTICATED, message: plainRefused });
    } else if (handoff.passOn !== undefined) {
      const { duplex } = this;
      this.#release(duplex);
      this.#passOn(duplex, handoff.passOn);
    } else return false;
    return true;
  }

  /** Goes on within TLS, where neither a greeting nor TLS again may come. */
  #secure(secure: NonNullable<Handoff['secure']>, passOn: Handoff['passOn']): void {
    const { duplex } = this;
    this.#securing = true;
    this.#awaitedSinceMs = clockMs();
    this.#roundTrips = 1;
    this.#handoff = undefined;
    this.#release(duplex);
    secure(duplex).then(
      (secured) => {
        this.#securing = false;
        this.progressed();
        if (this.#ended !== undefined) {
          secured.destroy();
        } else if (passOn !== undefined) {
          this.#passOn(secured, passOn);
        } else {
          this.duplex = secured;
          this.#listen();
        }
      },
      (error: Error) => {
        const known = error instanceof RpcError ? error : undefined;
        this.#code ??= known?.code;
        this.#end(`TLS: ${known?.rawMessage ?? error.message}`);
      },
    );
  }

  /** Reads no more, and puts back what has been read. */
  #release(duplex: Duplex): void {
    duplex.off('data', this.#onData).off('end', this.#onFinish).pause();
    duplex.unshift(this.#pending);
    this.#pending = Buffer.alloc(0);
  }

  /** The link ends without a word: the connection goes on without it. */
  #passOn(duplex: Duplex, passOn: NonNullable<Handoff['passOn']>): void {
    this.#ended = passedOn;
    this.#handoff = undefined;
    passOn(duplex);
  }

  /** Nothing may be said here, nor the connection be ended: it is another's. */
  #give(handoff: Handoff): void {
    const why = handoff.handOff(this.duplex, this.#pending.subarray(0, greetingBytes));
    this.handedOver = why === '';
    this.duplex.destroy();
    this.#end(why === '' ? handedOver.message : why);
  }

  /** What came is against the rules: tells the peer, and ends. */
  #refuse(what: string): void {
    this.close(`the peer sent ${what}`, { type: 'bye', reason: controlText(`received ${what}`) });
  }

  /** For those who wait for frames. */
  #error(): Error {
    if (this.handedOver) return handedOver;
    // It has been read and says more than the end of the connection behind it.
    const { refusal } = this;
    if (refusal !== undefined) return refused(refusal);
    const reason = this.#ended!;
    return this.#code === undefined ? new Error(reason) : new RpcError(errorCode(this.#code), reason);
  }

  #end(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#pending = Buffer.alloc(0);
    if (this.#securing) this.duplex.destroy();
    // What was sent last is on its way and small enough for the system's own buffer; what still comes is
    // dropped.
    const { duplex } = this;
    duplex.resume();
    if (!duplex.writableEnded && !duplex.destroyed) duplex.end();
    if (duplex.writableFinished || duplex.destroyed) duplex.destroy();
    else {
      // A peer that reads nothing must not keep the socket, and with it the process, for ever.
      const timer = setTimeout(() => duplex.destroy(), closeTimeoutMs).unref();
      duplex.once('finish', () => {
        clearTimeout(timer);
        duplex.destroy();
      });
    }
    this.#waiter?.reject(this.#error());
    this.#waiter = undefined;
    this.onEnd?.(reason);
  }
}
