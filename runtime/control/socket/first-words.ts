/**
 * Connections that have said nothing yet, at a listener that passes them on to others: those of sessions are
 * handed over (handoff.ts), the rest go on as they came, within TLS where that is asked for. Each has a time
 * limit; so many may be silent (silent.ts), and so many are in the middle of TLS (places.ts). Used on the
 * main thread of a worker group.
 */
import type { Socket } from 'node:net';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { textOf } from '../../core/foreign.ts';
import { handshakes, handshakeTimeoutMs } from '../../limits.ts';
import { Places } from '../handshake/places.ts';
import { Silent } from '../handshake/silent.ts';
import { Link } from '../link.ts';
import { isTls, plainRefused } from '../tls/tls-records.ts';
import type { TlsAcceptor } from '../tls/tls-server.ts';
import { greetingBytes, greetingMagic, handOff } from './handoff.ts';

const magicBytes = 4;

/** The line of a log for a connection that never became a session. */
export const handshakeFailed = (peer: string, why: string): string => `handshake with ${peer} failed: ${why}`;

export class FirstWords {
  readonly #then: (socket: Socket) => void;
  readonly #tls: TlsAcceptor | undefined;
  readonly #log: (line: string, from: string) => void;
  readonly #silent = new Silent<Socket>(handshakes.default, (socket) => socket.destroy());
  /** Those with which TLS has begun or is to begin. */
  readonly #securing = new Places<Socket>(handshakes.default, {
    awaitedMs: () => Number.POSITIVE_INFINITY,
    steps: () => 0,
    rank: () => 0,
    sendAway: (socket) => {
      this.#securing.leave(socket);
      socket.destroy();
    },
  });
  readonly #open = new Set<Socket>();

  /**
   * `then`: gets each sideband connection, with nothing read from it; one of TLS when keys are agreed. `tls`:
   * TCP connections must have it. `log`: a line of each that has failed with it, and where that comes from.
   */
  constructor(
    then: (socket: Socket) => void,
    tls?: TlsAcceptor,
    log: (line: string, from: string) => void = () => undefined,
  ) {
    this.#tls = tls;
    this.#then = then;
    this.#log = log;
  }

  /** Connections that are waited for. */
  get count(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), handshakeTimeoutMs.default).unref();
    this.#open.add(socket);
    this.#silent.add(socket);
    const heard: Buffer[] = [];
    // Once it is closed nobody knows that any more.
    const { remoteAddress = '', remotePort } = socket;
    const failed = (why: string): void =>
      this.#log(handshakeFailed(`${remoteAddress}:${remotePort}`, why), remoteAddress);
    const look = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
        heard.push(chunk);
      const words = Buffer.concat(heard);
      const isSession = words.byteLength >= magicBytes && words.readUInt32LE(0) === greetingMagic;
      if (words.byteLength < (isSession ? greetingBytes : magicBytes)) return;
      const tls = isSession || socket.remoteAddress === undefined ? undefined : this.#tls;
      if (tls !== undefined && isTls(words.readUInt32LE(0))) {
        this.#silent.delete(socket);
        socket.off('readable', look).off('end', lost).unshift(words);
        this.#secured(tls, socket).then(
          (secured) => {
            leave();
            this.#then(secured);
          },
          (error: unknown) => {
            lost();
            failed(`TLS: ${error instanceof RpcError ? error.rawMessage : textOf(error)}`);
          },
        );
        return;
      }
      leave();
      if (isSession) {
        handOff(socket, words.subarray(0, greetingBytes));
        socket.destroy();
      } else if (tls !== undefined) {
        const refusal = { type: 'refusal', code: Status.UNAUTHENTICATED, message: plainRefused } as const;
        new Link(socket).close(plainRefused, refusal);
        failed(plainRefused);
      } else {
        socket.unshift(words);
        this.#then(socket);
      }
    };
    const lost = (): void => {
      leave();
      socket.destroy();
    };
    const leave = (): void => {
      clearTimeout(timer);
      this.#open.delete(socket);
      this.#silent.delete(socket);
      this.#securing.leave(socket);
      socket.off('readable', look).off('end', lost).off('close', lost);
    };
    // One that is lost is no error of the process.
    socket.on('error', () => undefined);
    socket.on('readable', look).on('end', lost).on('close', lost);
  }

  /** Nobody is waited for any more. */
  close(): void {
    for (const socket of [...this.#open]) socket.destroy();
  }

  /** When it is its turn. */
  async #secured(tls: TlsAcceptor, socket: Socket): Promise<Socket> {
    await this.#securing.enter(socket);
    return tls.secure(socket);
  }
}
