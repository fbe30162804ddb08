/**
 * A sideband connection: length-prefixed msgpack frames over any Duplex (a socket, or an in-memory pair).
 * During the handshake, frames are awaited one by one. After the handshake, each frame is passed to
 * `onFrame`. Both handshakes use this file.
 */
import type { Duplex } from 'node:stream';
import { Packr, Unpackr } from '#msgpackr';
import { clockMs } from '../clock.ts';
import { comeAgainIn } from '../core/errors/pushback.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { errorCode, Status } from '../core/errors/status.ts';
import { closeTimeoutMs, controlFrameBytes } from '../limits.ts';
import { checkFrame, controlText, type Frame, otherVersion, type Refusal } from './frames.ts';
import { connectMessageBytes, connectMessageMagic, type Handoff } from './socket/handoff.ts';
import { plainRefused } from './tls/mismatch.ts';
import { isTls, tlsClosed, tlsRefused } from './tls/tls-records.ts';

const prefixBytes = 4;
const plain = { useRecords: false, moreTypes: false, mapsAsObjects: true, copyBuffers: true } as const;
const packr = new Packr(plain);
const unpackr = new Unpackr(plain);
/**
 * All links share this error. Its text is never shown, and a server would otherwise create an error for each
 * session of the tcp fabric.
 */
const handedOver = new Error('a connection of a session');
const passedOn = 'a connection that is passed on';

/** Returns the client's error for a refusal of the server. */
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

/**
 * Decodes the frame in `body`. Returns the frame, or a text that says what was received instead of a frame.
 */
export function decodeFrame(body: Uint8Array): Frame | string {
  let value: unknown;
  try {
    value = unpackr.unpack(body);
  } catch {
    return 'bad frame: not MessagePack';
  }
  const other = otherVersion(value);
  if (other !== undefined) return other;
  const frame = checkFrame(value);
  return typeof frame === 'string' ? `bad frame: ${frame}` : frame;
}

export class Link {
  /** The connection. After the TLS handshake it is the TLS socket. */
  duplex: Duplex;
  /** Receives unsolicited frames. Is set after the handshake. */
  onFrame: ((frame: Frame) => void) | undefined;
  /** Runs once, with the reason why the connection has ended. */
  onEnd: ((reason: string) => void) | undefined;

  /** The step of this side that the handshake waits for. The error text of a timeout contains it. */
  awaits: string | undefined;
  /**
   * True when this was the data connection of a session of this process, not a sideband connection. The
   * session has then taken the connection over.
   */
  handedOver = false;

  #spoke = false;
  /**
   * The time at which this side began to wait for the peer's next step. `#roundTrips` is the number of round
   * trips that this step takes.
   */
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
  /** The status code of `refusalCode`. */
  #code: number | undefined;

  /**
   * `handoff` takes connections that do not begin with a frame. Without `handoff`, such connections are
   * refused.
   */
  constructor(duplex: Duplex, handoff?: Handoff) {
    this.duplex = duplex;
    this.#handoff = handoff;
    this.#listen();
  }

  /**
   * The status code with which this side, or TLS, has refused the peer. It is undefined when the peer was not
   * refused.
   */
  get refusalCode(): number | undefined {
    return this.#code;
  }

  /** The reason why the connection has ended, or undefined while it is open. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** A refusal that has arrived and that `receive` has not returned yet. */
  get refusal(): Refusal | undefined {
    return this.#ready.find((frame) => frame.type === 'refusal');
  }

  /**
   * The time for which this side has waited for the peer, in milliseconds per round trip that the peer's step
   * needs. The value is 0 while the peer waits for this side.
   */
  get awaitedMs(): number {
    const awaits = this.#securing || this.#waiter !== undefined;
    return awaits ? (clockMs() - this.#awaitedSinceMs) / this.#roundTrips : 0;
  }

  /**
   * Number of handshake steps that the peer has completed. TLS, each frame and each call of `progressed`
   * count as one step.
   */
  get steps(): number {
    return this.#steps;
  }

  /**
   * Records that the peer has completed a step without sending a frame here. The next step takes one round
   * trip.
   */
  progressed(): void {
    ++this.#steps;
    this.#awaitedSinceMs = clockMs();
    this.#roundTrips = 1;
  }

  /** Returns hello and welcome exactly as they were sent. This function can be called once. */
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
   * Resolves with the next frame. Rejects when the connection ends first. Only one caller may wait at a time.
   * `roundTrips` is the number of round trips that the peer needs before it can send the frame.
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

  /**
   * Resolves with the result of `promise`. Rejects when the connection ends first. This function may be used
   * only before `onEnd` is set.
   */
  whileOpen<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.onEnd = () => reject(this.#error());
      if (this.#ended !== undefined) reject(this.#error());
      promise.then(resolve, reject);
    }).finally(() => {
      this.onEnd = undefined;
    });
  }

  /** Sets `onFrame`, and passes the frames that have already arrived to it. */
  deliver(onFrame: (frame: Frame) => void): void {
    this.onFrame = onFrame;
    for (const frame of this.#ready.splice(0)) this.#dispatch(frame);
  }

  /**
   * Sends the frame `last`, if given, and ends the connection. Calls `onEnd` with `reason` if `onEnd` was not
   * called before.
   */
  close(reason: string, last?: Frame): void {
    if (this.#ended === undefined && last?.type === 'refusal') this.#code = last.code;
    if (this.#ended === undefined && last !== undefined && !this.#awaitsTls)
      this.duplex.end(encodeFrame(last));
    this.#end(reason);
  }

  /**
   * True while TLS is required and not complete. A frame that is sent now would be read as TLS, and the peer
   * would believe that this server does not use TLS.
   */
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
      if (typeof frame === 'string') this.#refuse(frame);
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
    // During a handshake a ping is an error, like every other frame that is not awaited.
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
      this.#refuse('frames out of order');
    }
  }

  /**
   * Returns true when this link must not read the first bytes as a frame. This is the case when the bytes are
   * not a frame, when the connection is passed on, and when TLS is required. `bodyBytes` is the length of the
   * frame, if the first bytes are a frame.
   */
  #isNotRead(bodyBytes: number, handoff: Handoff): boolean {
    if (bodyBytes === connectMessageMagic) {
      if (this.#pending.byteLength >= connectMessageBytes) this.#give(handoff);
    } else if (isTls(bodyBytes)) {
      if (handoff.secure === undefined) this.#refuse(tlsRefused);
      else this.#secure(handoff.secure, handoff.passOn);
    } else if (handoff.secure !== undefined) {
      this.#handoff = undefined;
      const message = handoff.plainRefused ?? plainRefused;
      this.close(message, { type: 'refusal', code: Status.UNAUTHENTICATED, message });
    } else if (handoff.passOn !== undefined) {
      const { duplex } = this;
      this.#release(duplex);
      this.#passOn(duplex, handoff.passOn);
    } else return false;
    return true;
  }

  /** Continues within TLS. Neither a connect message nor TLS may follow at this point. */
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

  /** Stops reading, and returns the bytes that were read to the socket. */
  #release(duplex: Duplex): void {
    duplex.off('data', this.#onData).off('end', this.#onFinish).pause();
    duplex.unshift(this.#pending);
    this.#pending = Buffer.alloc(0);
  }

  /** Ends the link without sending anything. The connection continues without this link. */
  #passOn(duplex: Duplex, passOn: NonNullable<Handoff['passOn']>): void {
    this.#ended = passedOn;
    this.#handoff = undefined;
    passOn(duplex);
  }

  /**
   * Hands the connection over to a session. From then on the connection belongs to the session, so this link
   * must not send on it or close it.
   */
  #give(handoff: Handoff): void {
    const why = handoff.handOff(this.duplex, this.#pending.subarray(0, connectMessageBytes));
    this.handedOver = why === '';
    this.duplex.destroy();
    this.#end(why === '' ? handedOver.message : why);
  }

  /** Tells the peer that it has broken the protocol, and ends the connection. */
  #refuse(what: string): void {
    this.close(`the peer sent ${what}`, { type: 'bye', reason: controlText(`received ${what}`) });
  }

  /** Returns the error for callers that wait for frames. */
  #error(): Error {
    if (this.handedOver) return handedOver;
    // A refusal that was read gives a better reason than the end of the connection that followed.
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
    // The last frame has been written and is small enough for the system's own buffer. Bytes that still
    // arrive are dropped.
    const { duplex } = this;
    duplex.resume();
    if (!duplex.writableEnded && !duplex.destroyed) duplex.end();
    if (duplex.writableFinished || duplex.destroyed) duplex.destroy();
    else {
      // A peer that reads nothing must not keep the socket and the process alive for ever.
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
