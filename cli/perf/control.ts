/**
 * The control connection of a test, over which the two sides send lines of JSON in turn, by TCP. Both sides
 * of `rdma-rpc perf` use it, and each side checks what the other sends.
 */
import type { Socket } from 'node:net';
import { unmapped } from '../../runtime/control/socket/address.ts';

/** An error that ends a test. Its text is a sentence for the user; it is also sent to the peer. */
export class PerfError extends Error {}

export type Message = { readonly kind: string } & Readonly<Record<string, unknown>>;

const lineMax = 1 << 20;
const keepAliveMs = 10_000;
/** Maximum number of unread messages, which is small because the sides take turns. */
const waitingMax = 4;
/** Time limit for answers, in ms. A step has no such limit. */
const answerMs = 30_000;
const byeMs = 1000;

export class Control {
  readonly #socket: Socket;
  readonly #peer: string;
  #text = '';
  readonly #came: Message[] = [];
  #error: PerfError | undefined;
  #wake: (() => void) | undefined;
  #onError: ((error: PerfError) => void) | undefined;

  constructor(socket: Socket, peer: string) {
    this.#socket = socket;
    this.#peer = peer;
    // Keep-alive detects a peer whose host is gone. Without keep-alive, this side would notice the loss of
    // the host only after the test step.
    socket.setNoDelay(true).setKeepAlive(true, keepAliveMs).setEncoding('utf8');
    socket.on('data', (text) => this.#take(String(text)));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      this.#end(`${peer}: ${error.code ?? error.message}`),
    );
    socket.on('close', () => this.#end(`${peer} has gone: it closed its connection`));
  }

  /** Addresses of this connection, on this side and on the peer's. */
  get addresses(): { readonly own: string; readonly peer: string } {
    const { localAddress = '', remoteAddress = '' } = this.#socket;
    return { own: unmapped(localAddress), peer: unmapped(remoteAddress) };
  }

  get peer(): string {
    return this.#peer;
  }

  /** Runs at once when the peer ends the test or is gone. */
  set onError(listener: (error: PerfError) => void) {
    this.#onError = listener;
    if (this.#error !== undefined) listener(this.#error);
  }

  send(message: Message): void {
    this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** Returns the next message, which must have that kind. */
  async receive(kind: string, timeoutMs = answerMs): Promise<Message> {
    const message = await this.peek(kind, timeoutMs);
    this.#came.shift();
    return message;
  }

  /** Returns the next message without removing it. A `timeoutMs` of 0 means no time limit. */
  async peek(kind: string, timeoutMs: number): Promise<Message> {
    let late: NodeJS.Timeout | undefined;
    if (timeoutMs > 0)
      late = setTimeout(
        () =>
          this.#end(
            `${this.#peer} has not answered within ${timeoutMs / 1000} s: is rdma-rpc perf listening there?`,
          ),
        timeoutMs,
      );
    try {
      while (this.#came.length === 0) {
        if (this.#error !== undefined) throw this.#error;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(late);
    }
    const message = this.#came[0]!;
    if (message.kind !== kind) {
      this.fail(new PerfError(`'${kind}' was expected, not '${message.kind.slice(0, 20)}'`));
      throw new PerfError(
        `${this.#peer} does not follow the protocol of rdma-rpc perf: both sides must have the same version`,
      );
    }
    return message;
  }

  /** Sends the peer the reason why the test ends, and ends the connection. */
  fail(error: Error): void {
    if (this.#socket.writable) this.#bye(`${JSON.stringify({ kind: 'error', text: error.message })}\n`);
  }

  close(): void {
    this.#onError = undefined;
    this.#bye('');
  }

  /** Ends the connection without notifying the peer. */
  drop(): void {
    this.#socket.destroy();
  }

  /**
   * Ends the connection with a message. The peer closes its end after reading the message. If the peer does
   * not, the socket is destroyed after a while.
   */
  #bye(text: string): void {
    const late = setTimeout(() => this.#socket.destroy(), byeMs);
    this.#socket.once('close', () => clearTimeout(late));
    this.#socket.end(text);
  }

  #take(text: string): void {
    this.#text += text;
    for (let end = this.#text.indexOf('\n'); end >= 0; end = this.#text.indexOf('\n')) {
      const line = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 1);
      const message = parsed(line);
      if (message === undefined || this.#came.length >= waitingMax) {
        this.#stranger();
        return;
      }
      if (message.kind === 'error') {
        this.#end(`${this.#peer}: ${String(message.text).slice(0, 1000)}`);
        return;
      }
      this.#came.push(message);
      this.#wake?.();
    }
    if (this.#text.length > lineMax || (this.#text !== '' && !this.#text.startsWith('{'))) this.#stranger();
  }

  #stranger(): void {
    this.#end(`${this.#peer} is not rdma-rpc perf: it sends something else`);
  }

  #end(why: string): void {
    if (this.#error !== undefined) return;
    this.#error = new PerfError(why);
    this.#socket.destroy();
    this.#wake?.();
    this.#onError?.(this.#error);
  }
}

function parsed(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null && typeof (value as Message).kind === 'string')
      return value as Message;
  } catch {
    // The line is not JSON, so it is not one of our messages.
  }
  return undefined;
}
